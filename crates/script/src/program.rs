//! A script made ready to run: one function, compiled once.
//!
//! The body of a script is one function: `function (a, b) { … }`, named or not, async or not, or an arrow. Scripts that
//! put helper functions beside it are taken too; then the first function is the script.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_budget::Budget;

use crate::bytecode;
use crate::failure::{Failure, FailureKind};
use crate::limits::{Limits, Until};
use crate::sandbox::Sandbox;

/// Longest source of a script.
pub const SOURCE_BYTES_MAX: usize = 1024 * 1024;
/// Parsing a source of that length takes milliseconds; whatever takes longer was written to.
const COMPILE_TIME_MAX: Duration = Duration::from_secs(2);

/// A compiled script. Cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) bytecode: Arc<[u8]>,
}

impl Program {
    /// Compiles a source. `name` is how stacks call the file.
    pub fn compile(name: &str, source: &str) -> Result<Program, Failure> {
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!("Error: The script is longer than {SOURCE_BYTES_MAX} bytes.");
            return Err(Failure::new(FailureKind::Compile, message));
        }
        if source.contains('\0') {
            return Err(Failure::new(FailureKind::Compile, "SyntaxError: The script holds a NUL character."));
        }
        let file: String = format!("{name}.js").chars().filter(|c| !c.is_control()).collect();
        let limits = Limits::default();
        let deadline = Instant::now() + COMPILE_TIME_MAX;
        let until = Until::moment(deadline);
        let sandbox = Sandbox::new(limits.memory_bytes, limits.stack_bytes, until.clone())?;
        sandbox.begin(until, &Budget::unlimited())?;
        let attempt = |source: &str| {
            sandbox.context.with(|ctx| {
                bytecode::compile(&ctx, source, &file)
                    .map_err(|_| Failure { kind: FailureKind::Compile, ..sandbox.failure(&ctx) })
            })
        };
        let body = source.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
        let bytecode = match (attempt(&format!("({body}\n)")), first_function(source)) {
            (Ok(bytecode), _) => bytecode,
            (Err(failure), None) => return Err(failure),
            // The second error speaks of the source as it was written.
            (Err(_), Some(first)) => attempt(&format!("{source}\n;{first}"))?,
        };
        Ok(Program { bytecode: bytecode.into() })
    }
}

/// The name of the first `function name` of a source, outside of comments and strings at least at its start.
fn first_function(source: &str) -> Option<&str> {
    let mut rest = source;
    loop {
        let at = rest.find("function")?;
        let before = rest[..at].chars().next_back();
        let after = &rest[at + "function".len()..];
        let name = after.trim_start_matches(|c: char| c.is_whitespace() || c == '*');
        let length = name.find(|c: char| !is_name(c)).unwrap_or(name.len());
        if !before.is_some_and(is_name) && name.len() < after.len() && length > 0 {
            return Some(&name[..length]);
        }
        rest = after;
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_one_function_is_a_script() {
        for source in [
            "function () {}",
            "function named(a, b) { return a + b; }",
            "  function f() {}  ;\n",
            "async function f() { await 1; }",
            "(a) => a",
            "async () => {}",
            "// a comment\nfunction f() {} // and another",
            "function f() { return helper(); }\nfunction helper() { return 1; }",
            "'use strict';\nconst x = 1;\nfunction f() { return x; }",
        ] {
            Program::compile("s", source).unwrap_or_else(|failure| panic!("{source}: {failure:?}"));
        }
    }

    #[test]
    fn a_syntax_error_says_where() {
        let failure = Program::compile("broken", "function () {\n  var x = ;\n}").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Compile);
        assert!(failure.exception.starts_with("SyntaxError"), "{failure:?}");
        assert!(failure.stack.contains("broken.js:2:"), "{failure:?}");
    }

    #[test]
    fn sources_that_are_written_to_break_the_parser_are_refused() {
        let deep = format!("function () {{ return {}1{}; }}", "(".repeat(200_000), ")".repeat(200_000));
        assert_eq!(Program::compile("deep", &deep).unwrap_err().kind, FailureKind::Compile);
        assert!(Program::compile("long", &" ".repeat(SOURCE_BYTES_MAX + 1)).is_err());
        assert!(Program::compile("nul", "function () { '\0' }").is_err());
    }
}
