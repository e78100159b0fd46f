//! Users of databases, with what is kept of their passwords and the roles that they have.

use orrery_mongo::{Bson, Document, Error, Result, doc, error::code};

use super::{Call, options};
use crate::auth::{Credentials, Mechanism, ROLES};
use crate::reply::Reply;

fn name_of(call: &Call<'_>) -> Result<String> {
    match call.argument() {
        Bson::String(name) if !name.is_empty() => Ok(name.to_string()),
        _ => Err(Error::bad_value("User document needs 'user' field to be non-empty")),
    }
}

fn missing(name: &str, database: &str) -> Error {
    Error::new(code::USER_NOT_FOUND, format!("Could not find user \"{name}\" for db \"{database}\""))
}

/// Roles with the database that each is of.
fn roles(call: &Call<'_>, given: &[Bson]) -> Result<Bson> {
    let mut roles = Vec::with_capacity(given.len());
    for role in given {
        let (name, database) = match role {
            Bson::String(name) => (name.to_string(), call.database.to_owned()),
            Bson::Document(role) => (
                options::text(role, "role")?.unwrap_or_default().to_owned(),
                options::text(role, "db")?.unwrap_or_default().to_owned(),
            ),
            _ => return Err(Error::bad_value("Role names must be either strings or objects")),
        };
        if !ROLES.contains(&name.as_str()) {
            return Err(Error::new(code::ROLE_NOT_FOUND, format!("Could not find role: {name}@{database}")));
        }
        roles.push(Bson::from(doc! { "role" => name, "db" => database }));
    }
    Ok(Bson::array(roles))
}

fn credentials(call: &Call<'_>, name: &str, password: &str) -> Result<Document> {
    let wanted = options::array(call.body, "mechanisms")?;
    let mut all = Document::new();
    for mechanism in Mechanism::ALL {
        let asked =
            wanted.is_none_or(|wanted| wanted.iter().any(|one| one.as_str() == Some(mechanism.name())));
        if !asked {
            continue;
        }
        let secret = [call.core.random_u64().to_le_bytes(), call.core.random_u64().to_le_bytes()].concat();
        let salt = mechanism.fake_salt(name, &secret);
        all.push(mechanism.name(), Credentials::new(mechanism, name, password, salt).to_document());
    }
    match all.is_empty() {
        true => {
            Err(Error::bad_value("mechanisms field must be a non-empty array of SCRAM-SHA-1, SCRAM-SHA-256"))
        }
        false => Ok(all),
    }
}

pub fn create_user(call: &mut Call<'_>) -> Result<Reply> {
    let name = name_of(call)?;
    let core = call.core;
    if core.catalog.user(core, call.database, &name)?.is_some() {
        return Err(Error::new(51003, format!("User \"{name}@{}\" already exists", call.database)));
    }
    let password = options::text(call.body, "pwd")?
        .ok_or_else(|| Error::bad_value("Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db"))?;
    let given = options::array(call.body, "roles")?
        .ok_or_else(|| Error::new(40414, "BSON field 'createUser.roles' is missing but a required field"))?;
    let mut user = doc! {
        "_id" => format!("{}.{name}", call.database),
        "user" => name.as_str(),
        "db" => call.database,
        "credentials" => credentials(call, &name, password)?,
        "roles" => roles(call, given)?,
    };
    if let Some(custom) = options::document(call.body, "customData")? {
        user.push("customData", custom.clone());
    }
    core.catalog.set_user(core, call.database, &name, Some(user))?;
    Ok(Document::new().into())
}

pub fn update_user(call: &mut Call<'_>) -> Result<Reply> {
    let name = name_of(call)?;
    let core = call.core;
    let mut user =
        core.catalog.user(core, call.database, &name)?.ok_or_else(|| missing(&name, call.database))?;
    if let Some(password) = options::text(call.body, "pwd")? {
        user.set("credentials", credentials(call, &name, password)?);
    }
    if let Some(given) = options::array(call.body, "roles")? {
        user.set("roles", roles(call, given)?);
    }
    if let Some(custom) = options::document(call.body, "customData")? {
        user.set("customData", custom.clone());
    }
    core.catalog.set_user(core, call.database, &name, Some(user))?;
    Ok(Document::new().into())
}

fn change_roles(call: &mut Call<'_>, grants: bool) -> Result<Reply> {
    let name = name_of(call)?;
    let core = call.core;
    let mut user =
        core.catalog.user(core, call.database, &name)?.ok_or_else(|| missing(&name, call.database))?;
    let given = roles(call, options::array(call.body, "roles")?.unwrap_or_default())?;
    let given = given.as_array().unwrap_or_default();
    let mut kept = user.get("roles").and_then(Bson::as_array).unwrap_or_default().to_vec();
    kept.retain(|role| {
        !given.iter().any(|other| orrery_mongo::order::equal(role.into(), other.into(), None))
    });
    if grants {
        kept.extend(given.iter().cloned());
    }
    user.set("roles", Bson::array(kept));
    core.catalog.set_user(core, call.database, &name, Some(user))?;
    Ok(Document::new().into())
}

pub fn grant_roles(call: &mut Call<'_>) -> Result<Reply> {
    change_roles(call, true)
}

pub fn revoke_roles(call: &mut Call<'_>) -> Result<Reply> {
    change_roles(call, false)
}

pub fn drop_user(call: &mut Call<'_>) -> Result<Reply> {
    let name = name_of(call)?;
    let core = call.core;
    if core.catalog.user(core, call.database, &name)?.is_none() {
        return Err(Error::new(code::USER_NOT_FOUND, format!("User '{name}@{}' not found", call.database)));
    }
    core.catalog.set_user(core, call.database, &name, None)?;
    Ok(Document::new().into())
}

pub fn drop_all_users(call: &mut Call<'_>) -> Result<Reply> {
    let core = call.core;
    let mut n = 0;
    for user in core.catalog.users(core, call.database)? {
        if let Some(name) = user.get("user").and_then(Bson::as_str) {
            core.catalog.set_user(core, call.database, name, None)?;
            n += 1;
        }
    }
    Ok(doc! { "n" => n }.into())
}

pub fn users_info(call: &mut Call<'_>) -> Result<Reply> {
    let core = call.core;
    let mut users = Vec::new();
    let mut wanted: Vec<Bson> = Vec::new();
    match call.argument() {
        Bson::Array(list) => wanted.extend(list.iter().cloned()),
        Bson::Document(one) if one.get("forAllDBs").is_some_and(Bson::is_truthy) => {
            for database in core.account.databases() {
                users.extend(core.catalog.users(core, &database.name)?);
            }
        }
        Bson::String(_) | Bson::Document(_) => wanted.push(call.argument().clone()),
        _ => users.extend(core.catalog.users(core, call.database)?),
    }
    for one in wanted {
        let (name, database) = match &one {
            Bson::String(name) => (name.to_string(), call.database.to_owned()),
            Bson::Document(one) => (
                options::text(one, "user")?.unwrap_or_default().to_owned(),
                options::text(one, "db")?.unwrap_or(call.database).to_owned(),
            ),
            _ => return Err(Error::bad_value("usersInfo takes names, or {user, db}")),
        };
        users.extend(core.catalog.user(core, &database, &name)?);
    }
    let show = options::flag(call.body, "showCredentials", false)?;
    let users = users.into_iter().map(|mut user| {
        let kept = user.remove("credentials");
        let names = kept
            .as_ref()
            .and_then(Bson::as_document)
            .map(|all| all.iter().map(|(name, _)| Bson::from(&**name)).collect::<Vec<_>>());
        user.push("mechanisms", Bson::array(names.unwrap_or_default()));
        if let (true, Some(kept)) = (show, kept) {
            user.push("credentials", kept);
        }
        Bson::from(user)
    });
    Ok(doc! { "users" => Bson::array(users.collect()) }.into())
}

pub fn roles_info(call: &mut Call<'_>) -> Result<Reply> {
    let wanted: Vec<String> = match call.argument() {
        Bson::String(name) => vec![name.to_string()],
        Bson::Document(one) => options::text(one, "role")?.map(str::to_owned).into_iter().collect(),
        Bson::Array(list) => list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        _ if options::flag(call.body, "showBuiltinRoles", false)? => {
            ROLES.iter().map(|role| (*role).to_owned()).collect()
        }
        _ => Vec::new(),
    };
    let known = wanted.into_iter().filter(|name| ROLES.contains(&name.as_str())).map(|name| {
        let none = || Bson::array(Vec::new());
        Bson::from(doc! { "role" => name, "db" => call.database, "isBuiltin" => true, "roles" => none(), "inheritedRoles" => none() })
    });
    Ok(doc! { "roles" => Bson::array(known.collect()) }.into())
}
