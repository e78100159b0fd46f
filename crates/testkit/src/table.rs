//! Changesets over the wire, for tests of the Table API that kill the server.
//!
//! Each writer owns groups of entities, one logical partition each. A changeset replaces all entities of a group at
//! once, with the number of a version in each of them; so a group is whole when all its entities have the same
//! number, and nothing is lost when that number is the last one acknowledged, or the one that was in flight.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::client::{Client, EMULATOR_KEY, Reply};
use crate::random::Random;

const ACCOUNT: &str = "orrery";
/// Groups of one writer, and entities of one group.
const GROUPS: u64 = 8;
const ENTITIES: u64 = 5;
/// Filler of an entity.
const FILLER_BYTES_MAX: u64 = 2_000;

/// One that writes changesets, and what it knows about its groups.
pub struct ChangesetWriter {
    table: String,
    number: u64,
    random: Random,
    version: u64,
    /// The last version that was acknowledged, by group.
    groups: BTreeMap<u64, u64>,
    /// The group and version of the changeset whose answer did not come.
    pending: Option<(u64, u64)>,
    meets_outages: bool,
    pub acknowledged: u64,
    /// Changesets in flight at a kill, and those of them that were found, whole.
    pub in_flight: u64,
    pub in_flight_found: u64,
}

/// A request of the Table API, signed with the emulator's key. `path` begins behind the account.
pub fn table_request(
    client: &mut Client,
    method: &str,
    path: &str,
    content_type: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Reply> {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let signed = path.split('?').next().unwrap_or_default();
    let text = format!("{method}\n\n{content_type}\n{date}\n/{ACCOUNT}/{ACCOUNT}/{signed}");
    let key = STANDARD.decode(EMULATOR_KEY)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key)?;
    mac.update(text.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let mut request = format!(
        "{method} /{ACCOUNT}/{path} HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {date}\r\nx-ms-version: 2019-02-02\r\n\
         authorization: SharedKey {ACCOUNT}:{signature}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.push_str(body);
    client.exchange(request.as_bytes())
}

impl ChangesetWriter {
    pub fn new(table: &str, number: u64, seed: u64) -> ChangesetWriter {
        ChangesetWriter {
            table: table.to_owned(),
            number,
            random: Random::new(seed),
            version: 0,
            groups: BTreeMap::new(),
            pending: None,
            meets_outages: false,
            acknowledged: 0,
            in_flight: 0,
            in_flight_found: 0,
        }
    }

    /// Makes the table, with this throughput.
    pub fn create_table(client: &mut Client, table: &str, throughput: &str) -> Result<()> {
        let body = format!(r#"{{"TableName":"{table}"}}"#);
        let headers = [("x-ms-offer-throughput", throughput)];
        table_request(client, "POST", "Tables", "application/json", &headers, &body)?.expect_status(201)?;
        Ok(())
    }

    /// Takes answers which say that the store is away for none.
    pub fn meeting_outages(self) -> ChangesetWriter {
        ChangesetWriter { meets_outages: true, ..self }
    }

    /// Writes until a changeset gets no answer. An answer that is no success is an error.
    pub fn write_until(&mut self, address: SocketAddr, over: &AtomicBool) -> Result<()> {
        let mut client = Client::new(address);
        while !over.load(Relaxed) && self.pending.is_none() {
            let group = self.random.below(GROUPS);
            self.version += 1;
            let body = self.changeset(group, self.version);
            let kind = "multipart/mixed; boundary=batch_1";
            let Ok(reply) = table_request(&mut client, "POST", "$batch", kind, &[], &body) else {
                self.in_flight += 1;
                self.pending = Some((group, self.version));
                return Ok(());
            };
            if self.meets_outages
                && [503, 408].iter().any(|status| reply.text().contains(&format!("HTTP/1.1 {status}")))
            {
                self.in_flight += 1;
                self.pending = Some((group, self.version));
                return Ok(());
            }
            let parts = reply.text().matches("HTTP/1.1 204").count() as u64;
            ensure!(
                reply.status == 202 && parts == ENTITIES,
                "writer {}: a changeset got {} {}",
                self.number,
                reply.status,
                reply.text()
            );
            self.groups.insert(group, self.version);
            self.acknowledged += 1;
        }
        Ok(())
    }

    fn partition_key(&self, group: u64) -> String {
        format!("w{}-g{group}", self.number)
    }

    /// Replaces, merges, and deletes of an entity that may not be there would fail: those that are written come and go
    /// by insert-or-replace.
    fn changeset(&mut self, group: u64, version: u64) -> String {
        let (table, partition) = (self.table.clone(), self.partition_key(group));
        let mut text =
            String::from("--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n");
        for row in 0..ENTITIES {
            let filler = "x".repeat(self.random.below(FILLER_BYTES_MAX) as usize);
            // A merge reads what it changes, a replace does not.
            let verb = if row % 2 == 0 { "PUT" } else { "PATCH" };
            text.push_str(&format!(
                "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 {verb} http://localhost/{ACCOUNT}/{table}(PartitionKey='{partition}',RowKey='{row}') HTTP/1.1\r\n\
                 Content-Type: application/json\r\n\r\n{{\"version\":{version},\"filler\":\"{filler}\"}}\r\n"
            ));
        }
        text.push_str("--changeset_1--\r\n--batch_1--\r\n");
        text
    }

    /// After the restart: every group must be whole, at the version that was acknowledged last or at the one in flight.
    pub fn check(&mut self, client: &mut Client) -> Result<()> {
        let pending = self.pending.take();
        for group in 0..GROUPS {
            let versions = self.versions(client, group)?;
            let found = versions.first().copied();
            ensure!(
                versions.iter().all(|version| Some(*version) == found)
                    && [0, ENTITIES].contains(&(versions.len() as u64)),
                "writer {}: group {group} is there in part: {versions:?}",
                self.number
            );
            let known = self.groups.get(&group).copied();
            let in_flight = pending.filter(|(of, _)| *of == group).map(|(_, version)| version);
            ensure!(
                found == known || found.is_some() && found == in_flight,
                "writer {}: group {group} must be at {known:?} or {in_flight:?}, but is at {found:?}",
                self.number
            );
            if let Some(found) = found.filter(|_| found != known) {
                self.in_flight_found += 1;
                self.groups.insert(group, found);
            }
        }
        Ok(())
    }

    /// The versions of a group's entities, in the order of their row keys.
    fn versions(&self, client: &mut Client, group: u64) -> Result<Vec<u64>> {
        let path = format!(
            "{}()?$filter=PartitionKey%20eq%20'{}'&$select=version",
            self.table,
            self.partition_key(group)
        );
        let reply = table_request(client, "GET", &path, "", &[], "")?.expect_status(200)?;
        ensure!(reply.header("x-ms-continuation-nextpartitionkey").is_none(), "a group is one page");
        let body = reply.json()?;
        let entities = body["value"].as_array().context("no entities")?;
        entities.iter().map(|entity| entity["version"].as_u64().context("no version")).collect()
    }
}
