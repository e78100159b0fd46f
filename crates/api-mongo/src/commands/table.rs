//! The table of commands. To add one: a function in a file of its family, a line here; the documentation follows.

use super::Work::{Little, Much};
use super::{
    Command, aggregate, bulk_write, cosmos, create, cursor, databases, delete, explain, find,
    find_and_modify, handshake, indexes, insert, server_info, sessions, update, users,
};
use crate::auth::Access::{Administer, Nobody, Read, Somebody, Write};

macro_rules! commands {
    ($($name:literal $(| $alias:literal)* : $access:ident $work:ident $(in $transactions:ident)? $(stable $stable:ident)? => $run:path, $about:literal;)*) => {
        /// Every command.
        pub const TABLE: &[Command] = &[$(Command {
            name: $name,
            aliases: &[$($alias),*],
            access: $access,
            in_transactions: false $(|| stringify!($transactions).len() > 0)?,
            stable: false $(|| stringify!($stable).len() > 0)?,
            work: $work,
            about: $about,
            run: $run,
        }),*];
    };
}

commands! {
    // Connections.
    "hello" | "isMaster" | "ismaster": Nobody Little stable yes => handshake::hello, "What the server is and can; begins authentication";
    "ping": Nobody Little stable yes => handshake::ping, "Answers";
    "buildInfo" | "buildinfo": Nobody Little stable yes => handshake::build_info, "The release that the server is like";
    "whatsmyuri": Nobody Little => handshake::whats_my_uri, "The address of the client";
    "connectionStatus": Nobody Little => handshake::connection_status, "Who the client is, and what it may do";
    "saslStart": Nobody Much stable yes => handshake::sasl_start, "Begins authentication with SCRAM-SHA-256 or SCRAM-SHA-1";
    "saslContinue": Nobody Much stable yes => handshake::sasl_continue, "Goes on with authentication";
    "logout": Nobody Little => handshake::logout, "Forgets who the client is";
    "getnonce": Nobody Little => handshake::get_nonce, "For old tools; nothing is done with it";
    // Documents.
    "insert": Write Much in transactions stable yes => insert::insert, "Inserts documents";
    "find": Read Much in transactions stable yes => find::find, "Finds documents";
    "getMore": Somebody Much in transactions stable yes => cursor::get_more, "The next batch of a cursor";
    "killCursors": Somebody Little in transactions stable yes => cursor::kill_cursors, "Closes cursors";
    "update": Write Much in transactions stable yes => update::update, "Changes, replaces or upserts documents";
    "delete": Write Much in transactions stable yes => delete::delete, "Deletes documents";
    "findAndModify" | "findandmodify": Write Much in transactions stable yes => find_and_modify::find_and_modify, "Changes or deletes one document and gives it back";
    "bulkWrite": Write Much in transactions stable yes => bulk_write::bulk_write, "Writes to several collections at once (8.0)";
    "aggregate": Read Much in transactions stable yes => aggregate::aggregate, "Runs a pipeline, or opens a change stream";
    "count": Read Much stable yes => find::count, "Counts documents";
    "distinct": Read Much in transactions => find::distinct, "The different values of a field";
    "mapReduce" | "mapreduce": Read Little => aggregate::map_reduce, "Refused: scripts of clients are not run";
    "explain": Read Much stable yes => explain::explain, "How a command is run";
    // Databases and collections.
    "listDatabases": Somebody Much stable yes => databases::list_databases, "Databases and their sizes";
    "dropDatabase": Write Much stable yes => databases::drop_database, "Drops a database";
    "listCollections": Read Much stable yes => databases::list_collections, "Collections and views of a database";
    "create": Write Much in transactions stable yes => create::create, "Makes a collection or a view";
    "drop": Write Much stable yes => databases::drop, "Drops a collection or a view";
    "renameCollection": Write Much => databases::rename_collection, "Copies a collection under another name and drops the old one";
    "collMod": Write Much stable yes => create::coll_mod, "Changes options of a collection, of a view or of an index";
    "collStats" | "collstats": Read Much => databases::coll_stats, "The size of a collection";
    "dbStats" | "dbstats": Read Much => databases::db_stats, "The size of a database";
    "dataSize" | "datasize": Read Much => databases::data_size, "The size of a collection, in few words";
    "validate": Read Much => databases::validate, "Counts; damage is looked for by `orrery check`";
    "compact": Write Little => server_info::nothing, "Nothing: the store does that by itself";
    "reIndex" | "reindex": Write Little => server_info::nothing, "Nothing: indexes follow by themselves";
    // Indexes.
    "createIndexes": Write Much in transactions stable yes => indexes::create_indexes, "Makes indexes";
    "listIndexes": Read Much stable yes => indexes::list_indexes, "Indexes of a collection";
    "dropIndexes" | "deleteIndexes": Write Much stable yes => indexes::drop_indexes, "Drops indexes";
    // Sessions and transactions.
    "startSession": Somebody Little => sessions::start_session, "Begins a session";
    "refreshSessions": Somebody Little => sessions::refresh, "Keeps sessions";
    "endSessions": Somebody Little stable yes => sessions::end, "Ends sessions";
    "killSessions": Somebody Little => sessions::end, "Ends sessions, with their cursors and transactions";
    "killAllSessions": Somebody Little => sessions::kill_all, "Ends all sessions";
    "killAllSessionsByPattern": Somebody Little => sessions::kill_all, "Ends all sessions";
    "commitTransaction": Write Much in transactions stable yes => sessions::commit, "Writes all of a transaction";
    "abortTransaction": Somebody Little in transactions stable yes => sessions::abort, "Writes nothing of a transaction";
    // Users.
    "createUser": Administer Much => users::create_user, "Makes a user with a password and roles";
    "updateUser": Administer Much => users::update_user, "Changes a user";
    "dropUser": Administer Much => users::drop_user, "Drops a user";
    "dropAllUsersFromDatabase": Administer Much => users::drop_all_users, "Drops all users of a database";
    "grantRolesToUser": Administer Much => users::grant_roles, "Gives roles to a user";
    "revokeRolesFromUser": Administer Much => users::revoke_roles, "Takes roles from a user";
    "usersInfo": Administer Much => users::users_info, "Users and their roles";
    "rolesInfo": Somebody Much => users::roles_info, "The roles that there are";
    // The server.
    "serverStatus": Somebody Little => server_info::server_status, "Figures of the server";
    "hostInfo": Somebody Little => server_info::host_info, "The machine";
    "getParameter": Somebody Little => server_info::get_parameter, "Settings that tools look at";
    "setParameter": Administer Little => server_info::set_parameter, "Settings of tests, without effect";
    "getCmdLineOpts": Somebody Little => server_info::get_cmd_line_opts, "How the server was started";
    "getLog": Somebody Little => server_info::get_log, "No lines: the log is the server's standard error";
    "listCommands": Somebody Little => server_info::list_commands, "This table";
    "top": Somebody Little => server_info::top, "How often and how long collections were used";
    "currentOp": Somebody Little => server_info::current_op, "Commands under way";
    "killOp": Administer Little => server_info::kill_op, "Ends a command that is under way";
    "replSetGetStatus": Somebody Little => server_info::repl_set_get_status, "A replica set of one";
    "replSetGetConfig": Somebody Little => server_info::repl_set_get_config, "A replica set of one";
    "getDefaultRWConcern": Somebody Little => server_info::get_default_rw_concern, "The concerns of commands that name none";
    "setDefaultRWConcern": Administer Little => server_info::get_default_rw_concern, "Without effect";
    "profile": Read Little => server_info::profile, "Writes down slow commands, or all of them, for `system.profile`";
    "fsync": Somebody Little => server_info::nothing, "Nothing: what is answered is durable";
    "setFeatureCompatibilityVersion": Administer Little => server_info::nothing, "Without effect";
    "logRotate": Administer Little => server_info::nothing, "Nothing";
    "getLastError" | "getlasterror": Somebody Little => server_info::get_last_error, "For old tools: every write says by itself what became of it";
    "configureFailPoint": Somebody Little => server_info::configure_fail_point, "Failures on purpose, for tests (`failCommand`), over loopback";
    // Cosmos DB.
    "shardCollection": Write Much => cosmos::shard_collection, "Makes a collection that is partitioned by a key";
    "enableSharding": Write Little => server_info::nothing, "Nothing: every database may have sharded collections";
    "customAction": Write Much => cosmos::custom_action, "Extension commands: CreateDatabase, UpdateDatabase, GetDatabase, CreateCollection, UpdateCollection, GetCollection, GetChangeStreamTokens";
    "getLastRequestStatistics": Somebody Little => cosmos::last_request_statistics, "What the last command of the connection has cost";
}
