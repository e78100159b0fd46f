//! Attachments of an item: create, upsert, read, list, query, replace, delete. Their media: `media`.
//!
//! The service retired them; clients of 2015 to 2019 still have them. An attachment is a small JSON object with a
//! content type and a link to its media. Either the client says where those are, or it posts the media themselves,
//! with their type and a name in the headers (`Content-Type`, `Slug`), and the link leads here.
//!
//! ```text
//! {"id":"photo","contentType":"image/png","media":"/media/AAAAAYAAAAIFAAAAAAAAAAEAAAAB","_rid":…,"_ts":…,…}
//! ```

use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use orrery_engine::{
    Attachment, AttachmentChange, AttachmentContent, AttachmentName, Error, Item, ItemReply, Media,
    Operation, Outcome, ReadOptions, Write, WriteReply, block_on,
};
use orrery_model::{Epk, PartitionKey};
use serde_json::Value;

use crate::actions::Action;
use crate::errors::{ApiError, INPUT_INVALID, Result};
use crate::headers::{self, Answer, At, SLUG};
use crate::resource_feed::{Entry, Feed};
use crate::rid::{MEDIA_LINK, MediaId, Rid, ascii};
use crate::service::{Context, Target};
use crate::write::{push_json_string, push_u64};
use crate::{body, consistency, items, request_class, scope};

/// Members that are not the client's to choose freely.
const OWN_MEMBERS: [&str; 7] = ["id", "contentType", "media", "_rid", "_ts", "_self", "_etag"];
const OCTETS: &str = "application/octet-stream";

/// The item that a request about attachments or their media is about.
pub struct AttachedItem {
    pub target: Target,
    pub key: PartitionKey,
    pub id: String,
}

pub async fn create_or_upsert(context: &Context<'_>) -> Result<Answer> {
    let attached = AttachedItem::of(context)?;
    let content = if is_upload(context) { uploaded(context) } else { described(context, &attached)? };
    let name = AttachmentName::Id(content.id.clone());
    let change = match context.action {
        Action::UpsertAttachment => AttachmentChange::Upsert(content),
        _ => AttachmentChange::Create(content),
    };
    let reply = attached.write(context, change).await?;
    attached.written(context, &reply, &name)
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let attached = AttachedItem::of(context)?;
    let content = described(context, &attached)?;
    let now = AttachmentName::Id(content.id.clone());
    let change = AttachmentChange::Replace(attached.name(context), content);
    let reply = attached.write(context, change).await?;
    attached.written(context, &reply, &now)
}

pub async fn delete(context: &Context<'_>) -> Result<Answer> {
    let attached = AttachedItem::of(context)?;
    let reply = attached.write(context, AttachmentChange::Delete(attached.name(context))).await?;
    let at = items::at(reply.at);
    let mut answer = items::answer(context, &attached.target, StatusCode::NO_CONTENT, at, reply.charge_ru);
    answer.headers.remove(CONTENT_TYPE);
    Ok(answer)
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let attached = AttachedItem::of(context)?;
    let (reply, attachment) = attached.find(context)?;
    let etag = attachment.etag();
    let known = context.text(IF_NONE_MATCH).is_some_and(|known| etag.matches(known));
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let answer = attached.answer(context, status, &reply).etag(&etag.to_string());
    Ok(if known { answer } else { answer.body(attached.json(&reply.item, &attachment)) })
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.list(context))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.query(context))
}

fn feed(context: &Context<'_>, answer: impl FnOnce(Feed<'_>) -> Result<Answer>) -> Result<Answer> {
    let attached = AttachedItem::of(context)?;
    let reply = attached.read(context)?;
    let attachments = attached.attachments(&reply.item)?;
    let entries = attachments
        .iter()
        .map(|one| Entry { number: one.number, json: attached.json(&reply.item, one) })
        .collect();
    let rid = attached.target.rid.item(reply.item.number);
    let answer = answer(Feed { key: "Attachments", rid: ascii(&rid), entries })?;
    let at = At { item_lsn: Some(reply.at.item_lsn), ..items::at(reply.at) };
    Ok(answer.at(at).charge(reply.charge_ru).owner(attached.target.alt_path(), attached.target.rid.as_str()))
}

impl AttachedItem {
    /// The item by its key and id, or by what the link to its media says.
    pub fn of(context: &Context<'_>) -> Result<AttachedItem> {
        let target = context.container_inside()?;
        if let (Some(epk), Some(Rid::Item { number, .. })) =
            (&context.path.media_epk, Rid::parse(context.path.id(2)))
        {
            let found = block_on(target.container.item_at(epk, number));
            let (key, id) = found.map_err(|error| items::failed(&target, &PartitionKey::default(), error))?;
            context.limits.permits_key(&key)?;
            return Ok(AttachedItem { target, key, id });
        }
        let key = scope::key(context)?;
        items::check_routable(&target, &key)?;
        let id = items::item_id(context, &target, &key)?.into_owned();
        Ok(AttachedItem { target, key, id })
    }

    pub fn read(&self, context: &Context<'_>) -> Result<ItemReply> {
        let session = consistency::session(context)?;
        let options = ReadOptions { if_none_match: None, session, class: request_class::class(context)? };
        block_on(self.target.container.read_item(&self.key, &self.id, &options))
            .map_err(|error| self.failed(error))
    }

    /// The attachment that the path names, and its item.
    pub fn find(&self, context: &Context<'_>) -> Result<(ItemReply, Attachment)> {
        let reply = self.read(context)?;
        let name = self.name(context);
        let found = self.attachments(&reply.item)?.into_iter().find(|one| name.names(one));
        let attachment = found.ok_or_else(|| self.failed(Error::not_found().charged(reply.charge_ru)))?;
        Ok((reply, attachment))
    }

    pub async fn write(&self, context: &Context<'_>, change: AttachmentChange) -> Result<WriteReply> {
        let write = Write {
            operation: Operation::Attach { id: self.id.clone(), change: Box::new(change) },
            if_match: context.text(IF_MATCH).map(str::to_owned),
            if_none_match: context.text(IF_NONE_MATCH).map(str::to_owned),
            session: consistency::session(context)?,
            class: request_class::class(context)?,
        };
        self.target.container.write_item(&self.key, write).await.map_err(|error| self.failed(error))
    }

    /// What the path calls the attachment. A path of rids names it by the number in its own.
    pub fn name(&self, context: &Context<'_>) -> AttachmentName {
        let text = context.path.id(3);
        match Rid::parse(text) {
            Some(Rid::Attachment { attachment, .. })
                if context.path.id(1) != self.target.container.name() =>
            {
                AttachmentName::Number(attachment)
            }
            _ => AttachmentName::Id(text.to_owned()),
        }
    }

    pub fn answer(&self, context: &Context<'_>, status: StatusCode, reply: &ItemReply) -> Answer {
        let at = At { item_lsn: Some(reply.at.item_lsn), ..items::at(reply.at) };
        items::answer(context, &self.target, status, at, reply.charge_ru)
    }

    fn written(&self, context: &Context<'_>, reply: &WriteReply, name: &AttachmentName) -> Result<Answer> {
        let status = match reply.outcome {
            Outcome::Created => StatusCode::CREATED,
            _ => StatusCode::OK,
        };
        let answer = items::answer(context, &self.target, status, items::at(reply.at), reply.charge_ru);
        let Some(item) = &reply.item else { return Ok(answer) };
        let Some(attachment) = self.attachments(item)?.into_iter().find(|one| name.names(one)) else {
            return Ok(answer);
        };
        let etag = attachment.etag();
        let answer = answer.set(ETAG, headers::short(|text| text.extend_from_slice(&etag.text())));
        Ok(if items::wants_body(context) { answer.body(self.json(item, &attachment)) } else { answer })
    }

    fn attachments(&self, item: &Item) -> Result<Vec<Attachment>> {
        item.attachments().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: Error) -> ApiError {
        items::failed(&self.target, &self.key, error)
    }

    fn epk(&self) -> Epk {
        self.target.container.definition().partition_key.effective(&self.key)
    }

    /// The service's members, and the client's own among them.
    fn json(&self, item: &Item, attachment: &Attachment) -> Vec<u8> {
        let rid = &self.target.rid;
        let attachment_rid = rid.attachment(item.number, attachment.number);
        let mut out = Vec::with_capacity(400 + attachment.members.len());
        out.extend_from_slice(b"{\"id\":");
        push_json_string(&mut out, &attachment.id);
        out.extend_from_slice(b",\"contentType\":");
        push_json_string(&mut out, &attachment.content_type);
        out.extend_from_slice(b",\"media\":");
        match &attachment.media {
            Media::Link(link) => push_json_string(&mut out, link),
            Media::Stored(_) => {
                let id = rid.media(item.number, attachment.number, &self.epk());
                push_json_string(&mut out, &format!("{MEDIA_LINK}{id}"));
            }
        }
        if !attachment.members.is_empty() {
            out.push(b',');
            out.extend_from_slice(attachment.members.as_bytes());
        }
        out.extend_from_slice(b",\"_rid\":\"");
        out.extend_from_slice(attachment_rid.as_bytes());
        out.extend_from_slice(b"\",\"_ts\":");
        push_u64(&mut out, u64::from(attachment.ts));
        out.extend_from_slice(b",\"_self\":\"");
        crate::item_json::write_self(&mut out, rid, item.number);
        out.extend_from_slice(b"attachments/");
        out.extend_from_slice(attachment_rid.as_bytes());
        out.extend_from_slice(b"/\",\"_etag\":");
        crate::item_json::write_etag(&mut out, attachment.etag());
        out.push(b'}');
        out
    }

    /// Whether a link leads to media that are stored with this very item.
    fn owns(&self, link: &str) -> bool {
        let id = link.trim_start_matches('/').strip_prefix(MEDIA_LINK.trim_matches('/'));
        let media = id.and_then(|id| MediaId::parse(id.trim_matches('/')));
        media.is_some_and(|media| {
            let container = &self.target.container;
            let of_item =
                block_on(container.item_at(&media.epk, media.item)).is_ok_and(|(_, id)| id == self.id);
            media.database == container.database().number && media.container == container.number() && of_item
        })
    }
}

/// Whether the body is the media themselves.
fn is_upload(context: &Context<'_>) -> bool {
    let content_type = context.content_type();
    let json = content_type.is_empty() || content_type.to_ascii_lowercase().starts_with("application/json");
    context.text(SLUG).is_some() || !json
}

fn uploaded(context: &Context<'_>) -> AttachmentContent {
    let id = context.text(SLUG).map_or_else(|| context.new_id(), str::to_owned);
    AttachmentContent {
        id,
        content_type: content_type_of(context),
        members: String::new(),
        media: Some(Media::Stored(context.body.clone())),
    }
}

/// The type of uploaded media.
pub fn content_type_of(context: &Context<'_>) -> String {
    match context.content_type() {
        "" => OCTETS.to_owned(),
        given => given.to_owned(),
    }
}

/// What a JSON body says about an attachment.
fn described(context: &Context<'_>, attached: &AttachedItem) -> Result<AttachmentContent> {
    let mut body = body::object(context)?;
    let text = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Err(ApiError::bad_request(format!(
            "The input content is invalid because the required properties - '{name}; ' - are missing"
        ))),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(ApiError::bad_request(INPUT_INVALID)),
    };
    let (id, content_type, link) = (text("id")?, text("contentType")?, text("media")?);
    let media = if attached.owns(&link) { None } else { Some(Media::Link(link)) };
    let mut members = String::new();
    if let Some(object) = body.as_object_mut() {
        object.retain(|name, _| !OWN_MEMBERS.contains(&name.as_str()));
        let whole = Value::Object(std::mem::take(object)).to_string();
        // The inside of the object.
        members.push_str(&whole[1..whole.len() - 1]);
    }
    Ok(AttachmentContent { id, content_type, members, media })
}
