//! Sessions and state: reading them.

use nuncio_protocol::Timestamp;
use rusqlite::{Connection, Row, params};

use super::batch::position;
use super::failure::Failure;
use crate::{SessionEntry, SessionKey, SessionState, StateScope};

/// The entries of a session, by `?1` to `?4`: its scope and context.
const ENTRIES: &str = "
    SELECT slot, session_entries.task, session_entries.at_ms, body FROM scopes
    JOIN sessions ON sessions.scope = scopes.number
    JOIN session_entries ON slot > (sessions.number << 32) + ?5
                        AND slot <= (sessions.number << 32) + 4294967295
    WHERE workspace = ?1 AND agent = ?2 AND caller = ?3 AND context = ?4";

/// Reads the entries after a position, or the newest ones; oldest first.
pub(super) fn entries(
    connection: &Connection,
    key: &SessionKey,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<SessionEntry>, Failure> {
    let direction = if after.is_some() { "" } else { "DESC" };
    let mut statement =
        connection.prepare_cached(&format!("{ENTRIES} ORDER BY slot {direction} LIMIT ?6"))?;
    let rows = statement.query_map(
        params![
            key.scope.workspace.as_str(),
            key.scope.agent.as_str(),
            key.scope.caller.as_str(),
            key.context.as_str(),
            after.unwrap_or(0).min(u32::MAX.into()) as i64,
            i64::try_from(limit).unwrap_or(i64::MAX),
        ],
        entry,
    )?;
    let mut entries = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    if after.is_none() {
        entries.reverse();
    }
    Ok(entries)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<SessionEntry> {
    Ok(SessionEntry {
        position: position(row.get(0)?),
        task: row.get::<_, String>(1)?.into(),
        at: Timestamp::from_unix_ms(row.get(2)?),
        json: row.get(3)?,
    })
}

/// All states that a session shares, by scope and name.
const STATES: &str = "
    SELECT 0, name, body FROM scopes
    JOIN sessions ON sessions.scope = scopes.number
    JOIN session_states ON session_states.session = sessions.number
    WHERE workspace = ?1 AND agent = ?2 AND caller = ?3 AND context = ?4
    UNION ALL
    SELECT 1, name, body FROM scopes JOIN caller_states ON caller_states.scope = scopes.number
    WHERE workspace = ?1 AND agent = ?2 AND caller = ?3
    UNION ALL
    SELECT 2, name, body FROM agent_states WHERE workspace = ?1 AND agent = ?2
    ORDER BY 1, 2";

/// Reads the states that a session shares.
pub(super) fn states(
    connection: &Connection,
    key: &SessionKey,
) -> Result<Vec<SessionState>, Failure> {
    let mut statement = connection.prepare_cached(STATES)?;
    let values = params![
        key.scope.workspace.as_str(),
        key.scope.agent.as_str(),
        key.scope.caller.as_str(),
        key.context.as_str(),
    ];
    let rows = statement.query_map(values, |row| {
        let scope = match row.get(0)? {
            0 => StateScope::Context,
            1 => StateScope::Caller,
            _ => StateScope::Agent,
        };
        Ok(SessionState {
            scope,
            name: row.get(1)?,
            value: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
