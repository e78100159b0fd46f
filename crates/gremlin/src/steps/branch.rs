//! Nested traversals: map(), flatMap(), local(), union(), coalesce(), optional(), choose(), branch(), sideEffect().

use super::*;
use crate::compare::equal;
use crate::predicate::P;
use crate::traverser::Traverser;
use crate::value::{Pick, T};

pub(crate) fn build_map(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [nested] = call.args else { return Err(call.wrong()) };
    let parts = Parts::children(vec![builder.child_of(nested)?]);
    match call.name {
        "map" => {
            Ok(Each::map(parts, |cx, parts, t| Ok(parts.children[0].first(cx, t)?.map(|found| found.value))))
        }
        "flatMap" => Ok(Each::op(parts, |cx, parts, traverser, out| {
            for found in parts.children[0].all(cx, &traverser)? {
                let mut next = traverser.step(found.value, cx.mode);
                next.bulk = next.bulk.saturating_mul(found.bulk);
                out.push(next);
            }
            Ok(())
        })),
        "sideEffect" => Ok(Each::op(parts, |cx, parts, traverser, out| {
            let child = &mut parts.children[0].0;
            child.reset();
            child.starts.push_back(traverser.clone());
            child.drain(cx)?;
            out.push(traverser);
            Ok(())
        })),
        _ => Err(call.wrong()),
    }
}

pub(crate) fn build_local(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [nested] = call.args else { return Err(call.wrong()) };
    let child = builder.child_of(nested)?;
    Ok(Each::op(Parts::children(vec![child]), |cx, parts, traverser, out| {
        let bulk = traverser.bulk;
        for mut found in parts.children[0].all(cx, &traverser)? {
            found.bulk = found.bulk.saturating_mul(bulk);
            out.push(found);
        }
        Ok(())
    }))
}

pub(crate) fn build_coalesce(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let parts = Parts::children(builder.children(call.args)?);
    Ok(Each::op(parts, |cx, parts, traverser, out| {
        for child in &mut parts.children {
            let found = child.all(cx, &traverser)?;
            if !found.is_empty() {
                for found in found {
                    let mut next = traverser.step(found.value, cx.mode);
                    next.bulk = next.bulk.saturating_mul(found.bulk);
                    out.push(next);
                }
                break;
            }
        }
        Ok(())
    }))
}

pub(crate) fn build_optional(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let parts = Parts::children(builder.children(call.args)?);
    if parts.children.len() != 1 {
        return Err(call.wrong());
    }
    Ok(Each::op(parts, |cx, parts, traverser, out| {
        let found = parts.children[0].all(cx, &traverser)?;
        if found.is_empty() {
            out.push(traverser);
        } else {
            for mut next in found {
                next.bulk = next.bulk.saturating_mul(traverser.bulk);
                out.push(next);
            }
        }
        Ok(())
    }))
}

enum Choice {
    /// Every traverser goes everywhere.
    All,
    /// By whether it holds: the first option, or the second.
    Test(Child),
    Predicate(P),
    /// By a value; none when it is nothing.
    Value(Child),
    Token(T),
}

enum Token {
    Is(Value),
    Matches(P),
    /// Holds when the traversal does.
    Test(Child),
    Pick(Pick),
}

pub(crate) fn build_union(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let options = match call.is_start {
        true => builder.start_children(call.args)?,
        false => builder.children(call.args)?,
    };
    let options = options.into_iter().map(|child| (Token::Pick(Pick::Any), child)).collect();
    Ok(Branch::op(Choice::All, options, false, call.is_start))
}

pub(crate) fn build_choose(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let mut options = Vec::new();
    let choice = match call.args {
        [Value::Traversal(test), yes, no @ ..] => {
            options.push((Token::Is(Value::Bool(true)), builder.child_of(yes)?));
            if let [no] = no {
                options.push((Token::Is(Value::Bool(false)), builder.child_of(no)?));
            }
            Choice::Test(builder.child(test)?)
        }
        [Value::P(p), yes, no @ ..] => {
            options.push((Token::Is(Value::Bool(true)), builder.child_of(yes)?));
            if let [no] = no {
                options.push((Token::Is(Value::Bool(false)), builder.child_of(no)?));
            }
            Choice::Predicate(P::clone(p))
        }
        [Value::Traversal(value)] => Choice::Value(builder.child(value)?),
        [Value::T(token)] => Choice::Token(*token),
        _ => return Err(call.wrong()),
    };
    for step in &call.mods {
        match step.arguments.as_slice() {
            [Value::Pick(Pick::Any), _] => {
                return Err(Error::runtime(
                    "choose() does not allow Pick.any as an option token, as only one option per traverser is allowed",
                ));
            }
            [Value::Traversal(_), Value::Traversal(_)] => {
                return Err(Error::runtime("choose() does not allow a traversal as an option token"));
            }
            [token, nested] => options.push((self::token(builder, token)?, builder.child_of(nested)?)),
            [nested] => options.push((Token::Pick(Pick::Any), builder.child_of(nested)?)),
            _ => return Err(call.wrong()),
        }
    }
    Ok(Branch::op(choice, options, true, false))
}

pub(crate) fn build_branch(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [nested] = call.args else { return Err(call.wrong()) };
    let choice = match nested {
        Value::T(token) => Choice::Token(*token),
        nested => Choice::Value(builder.child_of(nested)?),
    };
    let mut options = Vec::new();
    for step in &call.mods {
        match step.arguments.as_slice() {
            [token, nested] => options.push((self::token(builder, token)?, builder.child_of(nested)?)),
            [nested] => options.push((Token::Pick(Pick::Any), builder.child_of(nested)?)),
            _ => return Err(call.wrong()),
        }
    }
    Ok(Branch::op(choice, options, false, false))
}

fn token(builder: &mut Builder<'_>, value: &Value) -> Result<Token> {
    Ok(match value {
        Value::P(p) => Token::Matches(P::clone(p)),
        Value::Pick(pick) => Token::Pick(*pick),
        Value::Traversal(nested) => Token::Test(builder.child(nested)?),
        other => Token::Is(other.clone()),
    })
}

struct Branch {
    choice: Choice,
    options: Vec<(Token, Child)>,
    /// The first option that fits takes it, and who fits nowhere goes on unchanged.
    exclusive: bool,
    /// The rest of a batch that was handed to the options already.
    waiting: std::collections::VecDeque<Traverser>,
    /// Options that wait for all traversers need them all first.
    gathers: bool,
    is_start: bool,
    fed: bool,
    next_option: usize,
    routed: Vec<bool>,
}

impl Branch {
    fn op(choice: Choice, options: Vec<(Token, Child)>, exclusive: bool, is_start: bool) -> Box<dyn Op> {
        let gathers = options.iter().any(|(_, child)| child.0.has_barrier);
        let routed = vec![false; options.len()];
        Box::new(Branch {
            choice,
            options,
            exclusive,
            waiting: Default::default(),
            gathers,
            is_start,
            fed: false,
            next_option: 0,
            routed,
        })
    }

    fn route(&mut self, cx: &mut Cx<'_>, mut traverser: Traverser) -> Result<()> {
        if self.is_start {
            traverser.path = None;
        }
        let chosen = match &mut self.choice {
            Choice::All => {
                for (_, child) in &mut self.options {
                    child.0.starts.push_back(traverser.clone());
                }
                return Ok(());
            }
            Choice::Test(child) => Some(Value::Bool(child.test(cx, &traverser)?)),
            Choice::Predicate(p) => Some(Value::Bool(p.test(&traverser.value)?)),
            Choice::Value(child) => child.first(cx, &traverser)?.map(|found| found.value),
            Choice::Token(token) => crate::evaluate::token_of(cx, &traverser.value, *token)?,
        };
        let mut found = false;
        for (token, child) in &mut self.options {
            let fits = match (token, &chosen) {
                (_, None) => false,
                (Token::Is(value), Some(chosen)) => equal(value, chosen),
                (Token::Matches(p), Some(chosen)) => p.test(chosen)?,
                (Token::Test(test), Some(chosen)) => {
                    let mut start = traverser.clone();
                    start.value = chosen.clone();
                    test.test(cx, &start)?
                }
                (Token::Pick(_), _) => false,
            };
            if fits {
                found = true;
                child.0.starts.push_back(traverser.clone());
                if self.exclusive {
                    return Ok(());
                }
            }
        }
        let fallback = if chosen.is_none() && self.exclusive { Pick::Unproductive } else { Pick::None };
        for (token, child) in &mut self.options {
            match token {
                Token::Pick(Pick::Any) if !self.exclusive => child.0.starts.push_back(traverser.clone()),
                Token::Pick(pick) if !found && *pick == fallback => {
                    found = true;
                    child.0.starts.push_back(traverser.clone());
                }
                _ => {}
            }
        }
        if !found && self.exclusive {
            self.waiting.push_back(traverser);
        }
        Ok(())
    }
}

impl Op for Branch {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        loop {
            if !self.waiting.is_empty() {
                let count = self.waiting.len().min(want);
                return Ok(self.waiting.drain(..count).collect());
            }
            if self.fed {
                while let Some((_, child)) = self.options.get_mut(self.next_option) {
                    // An option that nobody took gives nothing, not even the count of nothing.
                    let taken = self.routed[self.next_option];
                    let batch = if taken { child.0.next(cx, want)? } else { Vec::new() };
                    if !batch.is_empty() {
                        return Ok(batch);
                    }
                    self.next_option += 1;
                }
                self.fed = false;
                if self.gathers {
                    self.next_option = usize::MAX;
                    return Ok(Vec::new());
                }
            }
            if self.next_option == usize::MAX {
                return Ok(Vec::new());
            }
            let batch = if self.gathers { up.all(cx)?.0 } else { up.next(cx, want)? };
            if batch.is_empty() {
                return Ok(batch);
            }
            self.routed.fill(false);
            for traverser in batch {
                self.route(cx, traverser)?;
            }
            for ((_, child), routed) in self.options.iter().zip(&mut self.routed) {
                *routed = !child.0.starts.is_empty();
            }
            self.fed = true;
            self.next_option = 0;
        }
    }

    fn reset(&mut self) {
        self.waiting.clear();
        self.fed = false;
        self.next_option = 0;
        for (_, child) in &mut self.options {
            child.0.reset();
        }
    }
}
