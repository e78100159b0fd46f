//! Changes of a container's scripts.

use std::sync::Arc;

use crate::catalog::changes::check_match;
use crate::catalog::rows::{RowKey, ScriptRow};
use crate::catalog::writer::Writer;
use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::script::{Script, ScriptDefinition, ScriptKind, Scripts};

impl Writer {
    pub(crate) fn create_script(
        &mut self,
        container: &Arc<Container>,
        definition: ScriptDefinition,
    ) -> Result<Arc<Script>> {
        self.check_present(container).map_err(|_| Error::owner_not_found())?;
        definition.check()?;
        let scripts = container.core().scripts();
        if scripts.by_id(definition.kind, &definition.id).is_some() {
            return Err(Error::already_exists());
        }
        let most = definition.kind.count_max();
        if scripts.count(definition.kind) >= most {
            let what = match definition.kind {
                ScriptKind::Procedure => "stored procedures",
                ScriptKind::Trigger => "triggers",
                ScriptKind::Function => "user defined functions",
            };
            let message = format!("The collection has reached its limit of {most} {what}.");
            return Err(Error::new(Kind::Forbidden, message));
        }
        // The LSN of the change that creates it: given once, and growing.
        let number = self.prepare().meta.lsn;
        self.put_script(container, number, definition)
    }

    pub(crate) fn replace_script(
        &mut self,
        container: &Arc<Container>,
        number: u64,
        definition: ScriptDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<Script>> {
        self.check_present(container).map_err(|_| Error::owner_not_found())?;
        definition.check()?;
        let scripts = container.core().scripts();
        let old = scripts.by_number(definition.kind, number).ok_or_else(Error::not_found)?;
        check_match(old.etag, if_match)?;
        if scripts.by_id(definition.kind, &definition.id).is_some_and(|other| other.number != number) {
            return Err(Error::already_exists());
        }
        self.put_script(container, number, definition)
    }

    pub(crate) fn delete_script(
        &mut self,
        container: &Arc<Container>,
        kind: ScriptKind,
        number: u64,
        if_match: Option<&str>,
    ) -> Result<()> {
        self.check_present(container).map_err(|_| Error::owner_not_found())?;
        let scripts = container.core().scripts();
        let old = scripts.by_number(kind, number).ok_or_else(Error::not_found)?;
        check_match(old.etag, if_match)?;
        let mut change = self.prepare();
        change.delete(RowKey::script(container.database().number, container.number(), number));
        self.commit(change)?;
        let mut scripts = Scripts::clone(&scripts);
        scripts.remove(old);
        container.core().set_scripts(scripts);
        self.publish(|_| ());
        Ok(())
    }

    fn put_script(
        &mut self,
        container: &Container,
        number: u64,
        definition: ScriptDefinition,
    ) -> Result<Arc<Script>> {
        let mut change = self.prepare();
        let (lsn, ts) = (change.meta.lsn, change.ts);
        let key = RowKey::script(container.database().number, container.number(), number);
        change.put(key, ScriptRow { lsn, ts, definition: definition.clone() }.encode());
        self.commit(change)?;
        let script = Arc::new(Script { number, definition, etag: Etag::new(lsn, ts), ts });
        let mut scripts = Scripts::clone(&container.core().scripts());
        scripts.insert(script.clone());
        container.core().set_scripts(scripts);
        self.publish(|_| ());
        Ok(script)
    }
}
