//! The server's side of a connection that a stream api serves: how it is told to end, and what it reports.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use orrery_api::{Attendant, ByteStream, Connection, LongTurn, StreamApi, Summary};
use tokio::sync::watch::{Receiver, Sender, channel};

use crate::connection::{Order, Watch};
use crate::deadline::within;
use crate::limits::LONG_REQUESTS_WAIT;
use crate::request_log::Line;
use crate::transport::Transport;

/// Has an api serve a connection until it ends, or is told to close.
pub async fn attend(
    api: &dyn StreamApi,
    stream: Box<dyn ByteStream>,
    connection: Connection,
    watch: Arc<Watch>,
    transport: Arc<Transport>,
) -> io::Result<()> {
    let (finish, finished): (Sender<bool>, Receiver<bool>) = channel(false);
    let attendant = Arc::new(Attended { api: api.name(), transport, watch: watch.clone(), finished });
    let mut serving = api.serve(stream, connection, attendant);
    loop {
        tokio::select! {
            biased;
            result = &mut serving => return result,
            order = watch.ordered() => match order {
                Order::Finish => drop(finish.send(true)),
                Order::Close => return Ok(()),
            },
        }
    }
}

struct Attended {
    api: &'static str,
    transport: Arc<Transport>,
    watch: Arc<Watch>,
    finished: Receiver<bool>,
}

impl Attendant for Attended {
    fn request_began(&self) {
        self.watch.request_began();
        self.transport.metrics.requests_in_flight.fetch_add(1, Relaxed);
    }

    fn request_ended(&self, summary: &Summary, status: u16, took: Duration) {
        let transport = &self.transport;
        transport.metrics.requests_in_flight.fetch_sub(1, Relaxed);
        self.watch.request_ended();
        let duration_us = took.as_micros() as u64;
        transport.metrics.request(self.api, summary, status, duration_us);
        if transport.request_log.wants(status) || summary.fault.is_some() {
            transport.request_log.write(&Line {
                method: self.api,
                path: "",
                operation: summary.operation,
                status,
                substatus: summary.substatus,
                charge_ru: summary.charge_ru,
                duration_us,
                activity: "",
                fault: summary.fault.as_ref().map_or("", |fault| &fault.rule),
            });
        }
    }

    fn long_turn(&self) -> Pin<Box<dyn Future<Output = Option<LongTurn>> + Send + '_>> {
        Box::pin(async move {
            let turn = self.watch.turn(true, self.transport.request_timeout).await?;
            if !self.transport.has_room(&self.watch) {
                return None;
            }
            let wait = Arc::clone(&self.transport.long).acquire_owned();
            let permit = within(LONG_REQUESTS_WAIT, wait).await?.ok()?;
            Some(LongTurn::new((turn, permit)))
        })
    }

    fn answer_queued(&self, bytes: usize) {
        self.watch.answer_began(bytes);
    }

    fn answer_taken(&self, bytes: usize) {
        self.watch.answer_moved();
        self.watch.answer_ended(bytes);
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut finished = self.finished.clone();
        Box::pin(async move {
            // An error says that the connection is being closed.
            let _ = finished.wait_for(|finish| *finish).await;
        })
    }
}
