//! Compiled form of a script, made and read by QuickJS itself.
//!
//! The safe bindings offer this only for modules, and scripts are not modules: they may use sloppy mode. Bytecode
//! never leaves the process, so what is loaded is always what was compiled here.

use std::ffi::CString;

use rquickjs::{Ctx, Error, Result, Value, qjs};

/// Compiles a script without running it.
#[allow(unsafe_code)]
pub(crate) fn compile(ctx: &Ctx<'_>, source: &str, file: &str) -> Result<Vec<u8>> {
    let source = CString::new(source)?;
    let file = CString::new(file)?;
    let raw = ctx.as_raw().as_ptr();
    let flags = (qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as i32;
    // SAFETY: the context is alive and in use by this thread; source and file are NUL-terminated and outlive the calls;
    // every value and buffer that QuickJS hands out is given back exactly once.
    unsafe {
        let compiled = qjs::JS_Eval(raw, source.as_ptr(), source.as_bytes().len() as _, file.as_ptr(), flags);
        if qjs::JS_IsException(compiled) {
            return Err(Error::Exception);
        }
        let mut length = 0;
        let written = qjs::JS_WriteObject(raw, &mut length, compiled, qjs::JS_WRITE_OBJ_BYTECODE as i32);
        qjs::JS_FreeValue(raw, compiled);
        if written.is_null() {
            return Err(Error::Exception);
        }
        let bytes = std::slice::from_raw_parts(written, length as usize).to_vec();
        qjs::js_free(raw, written.cast());
        Ok(bytes)
    }
}

/// Runs compiled code and gives the value of its last statement. `bytes` must come from [`compile`].
#[allow(unsafe_code)]
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: as above. `JS_EvalFunction` takes the function over, also when it fails.
    unsafe {
        let function =
            qjs::JS_ReadObject(raw, bytes.as_ptr(), bytes.len() as _, qjs::JS_READ_OBJ_BYTECODE as i32);
        if qjs::JS_IsException(function) {
            return Err(Error::Exception);
        }
        let value = qjs::JS_EvalFunction(raw, function);
        if qjs::JS_IsException(value) {
            return Err(Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), value))
    }
}
