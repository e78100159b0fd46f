//! Documents as JSON text, straight from the values of a script.
//!
//! `JSON.stringify` makes a string of the script's for every document, of many smaller ones; what creates documents
//! by the hundred spends most of its time there; and what shares its parts keeps it walking without end. So plain
//! data is walked here: objects, arrays, texts, numbers, booleans and null. Whatever is unusual (dates and others
//! that know how they want to be written, proxies, texts that are not Unicode, numbers that take more than a look,
//! what is deep or long) is left to `JSON.stringify`, whose results these are in every case.

#![allow(unsafe_code)]

use std::io::Write;
use std::ops::{Deref, DerefMut};

use orrery_model::{Number, NumberStyle, write_json_number, write_json_string};
use rquickjs::{Array, Ctx, Error, Object, Result, Value, qjs};

/// Documents nest less; `JSON.stringify` finds out whether it is a circle.
const DEPTH_MAX: usize = 64;
/// Longer than a document may be.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Integers up to here are written alike by everybody.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Smaller fractions are written with an exponent by some.
const DECIMAL_MIN: f64 = 1e-4;
/// Values of one document: what shares its parts may have more of them than there is time for.
const VALUES_MAX: usize = 200_000;

/// What became of a value.
enum Outcome {
    Written,
    /// JSON has nothing for it.
    Nothing,
    Unusual,
}

/// What is written so far, and of how many values.
struct Text {
    bytes: Vec<u8>,
    values: usize,
}

impl Deref for Text {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Text {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// What plain data is recognised by, in one runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    object: qjs::JSClassID,
    array: qjs::JSClassID,
    to_json: qjs::JSAtom,
}

impl Writer {
    /// Belongs to the runtime of `ctx`, and lives as long as it.
    pub(crate) fn new(ctx: &Ctx<'_>) -> Result<Writer> {
        let (object, array) = (Object::new(ctx.clone())?, Array::new(ctx.clone())?);
        let name = "toJSON";
        // SAFETY: values and context are alive; the name is as long as is said. The atom is never given back: all of
        // them go with the runtime.
        unsafe {
            Ok(Writer {
                object: qjs::JS_GetClassID(object.as_raw()),
                array: qjs::JS_GetClassID(array.as_raw()),
                to_json: qjs::JS_NewAtomLen(ctx.as_raw().as_ptr(), name.as_ptr().cast(), name.len() as _),
            })
        }
    }

    /// Whether a value is an array itself, and nothing that stands in for one.
    pub(crate) fn is_array(&self, value: &Value<'_>) -> bool {
        // SAFETY: the value is alive, and an object.
        value.is_object() && unsafe { qjs::JS_GetClassID(value.as_raw()) } == self.array
    }

    /// `None`: not plain data.
    pub(crate) fn text(&self, value: &Value<'_>) -> Result<Option<String>> {
        let mut out = Text { bytes: Vec::with_capacity(256), values: 0 };
        // SAFETY: the value is alive and of the context's runtime, and the context in use by this thread.
        let outcome = unsafe { self.value(value.ctx().as_raw().as_ptr(), value.as_raw(), &mut out, 0)? };
        Ok(if matches!(outcome, Outcome::Written) { String::from_utf8(out.bytes).ok() } else { None })
    }

    /// # Safety
    /// `value` is alive and of the runtime of `ctx`, which this thread uses.
    unsafe fn value(
        &self,
        ctx: *mut qjs::JSContext,
        value: qjs::JSValue,
        out: &mut Text,
        depth: usize,
    ) -> Result<Outcome> {
        out.values += 1;
        if out.values > VALUES_MAX || out.len() > BYTES_MAX {
            return Ok(Outcome::Unusual);
        }
        // SAFETY: as the caller says.
        unsafe {
            match qjs::JS_VALUE_GET_NORM_TAG(value) {
                qjs::JS_TAG_NULL => out.extend_from_slice(b"null"),
                qjs::JS_TAG_BOOL if qjs::JS_VALUE_GET_BOOL(value) => out.extend_from_slice(b"true"),
                qjs::JS_TAG_BOOL => out.extend_from_slice(b"false"),
                qjs::JS_TAG_INT => {
                    integer(i64::from(qjs::JS_VALUE_GET_INT(value)), out);
                }
                qjs::JS_TAG_FLOAT64 => return Ok(number(qjs::JS_VALUE_GET_FLOAT64(value), out)),
                qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => {
                    let mut length = 0;
                    let text = qjs::JS_ToCStringLen2(ctx, &mut length, value, false);
                    if !quoted(ctx, text, length as usize, out)? {
                        return Ok(Outcome::Unusual);
                    }
                }
                qjs::JS_TAG_OBJECT => return self.structure(ctx, value, out, depth),
                qjs::JS_TAG_UNDEFINED | qjs::JS_TAG_SYMBOL => return Ok(Outcome::Nothing),
                _ => return Ok(Outcome::Unusual),
            }
        }
        Ok(Outcome::Written)
    }

    /// # Safety
    /// As for `value`; and it is an object.
    unsafe fn structure(
        &self,
        ctx: *mut qjs::JSContext,
        object: qjs::JSValue,
        out: &mut Text,
        depth: usize,
    ) -> Result<Outcome> {
        // SAFETY: as the caller says. Every value and list that QuickJS hands out is given back once.
        unsafe {
            let class = qjs::JS_GetClassID(object);
            if depth > DEPTH_MAX || class != self.object && class != self.array {
                return Ok(Outcome::Unusual);
            }
            let to_json = qjs::JS_GetProperty(ctx, object, self.to_json);
            if qjs::JS_VALUE_GET_NORM_TAG(to_json) != qjs::JS_TAG_UNDEFINED {
                if qjs::JS_IsException(to_json) {
                    return Err(Error::Exception);
                }
                qjs::JS_FreeValue(ctx, to_json);
                return Ok(Outcome::Unusual);
            }
            if class == self.array {
                return self.elements(ctx, object, out, depth);
            }
            let (mut names, mut count) = (std::ptr::null_mut(), 0);
            let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY) as i32;
            if qjs::JS_GetOwnPropertyNames(ctx, &mut names, &mut count, object, flags) < 0 {
                return Err(Error::Exception);
            }
            let outcome = self.members(ctx, object, names, count, out, depth);
            qjs::JS_FreePropertyEnum(ctx, names, count);
            outcome
        }
    }

    /// # Safety
    /// As for `structure`; `names` are `count` names.
    unsafe fn members(
        &self,
        ctx: *mut qjs::JSContext,
        object: qjs::JSValue,
        names: *const qjs::JSPropertyEnum,
        count: u32,
        out: &mut Text,
        depth: usize,
    ) -> Result<Outcome> {
        out.push(b'{');
        let begin = out.len();
        for place in 0..count as usize {
            let before = out.len();
            if before > begin {
                out.push(b',');
            }
            // SAFETY: as the caller says.
            let outcome = unsafe {
                let name = (*names.add(place)).atom;
                let mut length = 0;
                let text = qjs::JS_AtomToCStringLen(ctx, &mut length, name);
                if !quoted(ctx, text, length as usize, out)? {
                    return Ok(Outcome::Unusual);
                }
                out.push(b':');
                self.owned(ctx, qjs::JS_GetProperty(ctx, object, name), out, depth)?
            };
            match outcome {
                Outcome::Written => {}
                Outcome::Nothing => out.truncate(before),
                Outcome::Unusual => return Ok(Outcome::Unusual),
            }
        }
        out.push(b'}');
        Ok(Outcome::Written)
    }

    /// # Safety
    /// As for `structure`; and it is an array.
    unsafe fn elements(
        &self,
        ctx: *mut qjs::JSContext,
        array: qjs::JSValue,
        out: &mut Text,
        depth: usize,
    ) -> Result<Outcome> {
        let mut length = 0;
        // SAFETY: as the caller says.
        if unsafe { qjs::JS_GetLength(ctx, array, &mut length) } < 0 {
            return Err(Error::Exception);
        }
        // Each element takes a byte at least.
        if length > BYTES_MAX as i64 {
            return Ok(Outcome::Unusual);
        }
        out.push(b'[');
        for place in 0..length as u32 {
            if place > 0 {
                out.push(b',');
            }
            // SAFETY: as the caller says.
            match unsafe { self.owned(ctx, qjs::JS_GetPropertyUint32(ctx, array, place), out, depth)? } {
                Outcome::Written => {}
                Outcome::Nothing => out.extend_from_slice(b"null"),
                Outcome::Unusual => return Ok(Outcome::Unusual),
            }
        }
        out.push(b']');
        Ok(Outcome::Written)
    }

    /// Writes a value and gives it back.
    ///
    /// # Safety
    /// As for `value`, of which the caller is the owner.
    unsafe fn owned(
        &self,
        ctx: *mut qjs::JSContext,
        value: qjs::JSValue,
        out: &mut Text,
        depth: usize,
    ) -> Result<Outcome> {
        // SAFETY: as the caller says.
        unsafe {
            if qjs::JS_IsException(value) {
                return Err(Error::Exception);
            }
            let outcome = self.value(ctx, value, out, depth + 1);
            qjs::JS_FreeValue(ctx, value);
            outcome
        }
    }
}

fn integer(number: i64, out: &mut Vec<u8>) {
    write_json_number(out, Number::Int(number), NumberStyle::Query);
}

fn number(number: f64, out: &mut Vec<u8>) -> Outcome {
    if !number.is_finite() {
        out.extend_from_slice(b"null");
    } else if number.fract() != 0.0 && number.abs() >= DECIMAL_MIN {
        // The shortest text that is this number, as in JavaScript.
        let _ = write!(out, "{number:?}");
    } else if number.fract() == 0.0 && number.abs() <= INTEGER_MAX {
        integer(number as i64, out);
    } else {
        return Outcome::Unusual;
    }
    Outcome::Written
}

/// Writes a text in quotes and gives it back. False: it is no UTF-8, as half of a surrogate pair is not.
///
/// # Safety
/// `text` comes from QuickJS with this length, or is null after an exception.
unsafe fn quoted(
    ctx: *mut qjs::JSContext,
    text: *const std::ffi::c_char,
    length: usize,
    out: &mut Vec<u8>,
) -> Result<bool> {
    if text.is_null() {
        return Err(Error::Exception);
    }
    // SAFETY: as the caller says; it is given back after the last look at it.
    unsafe {
        let known = std::str::from_utf8(std::slice::from_raw_parts(text.cast(), length));
        let is_text = known.map(|text| write_json_string(out, text)).is_ok();
        qjs::JS_FreeCString(ctx, text);
        Ok(is_text)
    }
}
