//! The media of attachments, whole: `GET` and `PUT /media/{id}`.
//!
//! The id says which attachment of which item it is, and where in the hash space the item's key lies
//! (`rid::MediaId`); the request itself names no partition key. It is signed as the attachment, of type `media`.

use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use orrery_engine::{AttachmentChange, Error, Kind, Media};

use crate::attachments::{AttachedItem, content_type_of};
use crate::errors::Result;
use crate::headers::{self, Answer};
use crate::items;
use crate::service::Context;

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let attached = AttachedItem::of(context)?;
    let (reply, attachment) = attached.find(context)?;
    let etag = attachment.etag();
    let Media::Stored(media) = attachment.media else {
        let elsewhere = Error::new(Kind::NotFound, "The media of this attachment are not stored here.");
        return Err(items::failed(&attached.target, &attached.key, elsewhere.charged(reply.charge_ru)));
    };
    let known = context.text(IF_NONE_MATCH).is_some_and(|known| etag.matches(known));
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let mut answer = attached.answer(context, status, &reply).etag(&etag.to_string());
    if !known {
        answer = answer.set(CONTENT_TYPE, headers::text_value(&attachment.content_type));
        answer.body = media;
    }
    Ok(answer)
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let attached = AttachedItem::of(context)?;
    let name = attached.name(context);
    let media = context.body.clone();
    let change = AttachmentChange::ReplaceMedia(name.clone(), content_type_of(context), media);
    let reply = attached.write(context, change).await?;
    let mut answer =
        items::answer(context, &attached.target, StatusCode::OK, items::at(reply.at), reply.charge_ru);
    let written = reply.item.and_then(|item| item.attachments().ok()).unwrap_or_default();
    if let Some(attachment) = written.iter().find(|one| name.names(one)) {
        let etag = attachment.etag();
        answer = answer.set(ETAG, headers::short(|text| text.extend_from_slice(&etag.text())));
    }
    Ok(answer)
}
