//! Lists: pages by index, totals by counters.

use nuncio_protocol::{ContextId, TaskId, TaskState, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::batch::scope_number;
use super::failure::Failure;
use super::read::Snapshot;
use crate::{ListFilter, PageKey, Scope, TaskPage};

/// A page to read.
pub(super) struct Page {
    pub(super) scope: Scope,
    pub(super) filter: ListFilter,
    pub(super) from: Option<PageKey>,
    pub(super) size: usize,
}

impl Page {
    /// Reads tasks and total as of one moment.
    pub(super) fn read(&self, connection: &Connection) -> Result<TaskPage, Failure> {
        let moment = connection.unchecked_transaction()?;
        let page = match scope_number(&moment, &self.scope)? {
            Some(scope) => self.read_in(&moment, scope)?,
            None => TaskPage {
                tasks: Vec::new(),
                next: None,
                total: 0,
            },
        };
        moment.finish()?;
        Ok(page)
    }

    fn read_in(&self, connection: &Connection, scope: i64) -> Result<TaskPage, Failure> {
        let mut query = Conditions::of(&self.filter, scope);
        let total = query.total(connection)?;
        if let Some(from) = &self.from {
            query.after(from);
        }
        let size = i64::try_from(self.size).unwrap_or(i64::MAX);
        query.values.push(Value::Integer(size.saturating_add(1)));
        let mut statement = connection.prepare_cached(&query.page())?;
        let mut rows = statement.query(params_from_iter(&query.values))?;
        let mut tasks = Vec::with_capacity(self.size.min(100));
        let mut last = None;
        while let Some(row) = rows.next()? {
            if tasks.len() == self.size {
                return Ok(TaskPage {
                    tasks,
                    next: last,
                    total,
                });
            }
            let (number, newest): (i64, i64) = (row.get(0)?, row.get(1)?);
            let snapshot = Snapshot::of(row, 2)?;
            tasks.push(snapshot.fold_tail(connection, number, newest as u64)?);
            if tasks.len() == self.size {
                last = Some(PageKey {
                    status_time: Timestamp::from_unix_ms(row.get(4)?),
                    task: row.get::<_, String>(5)?.into(),
                });
            }
        }
        Ok(TaskPage {
            tasks,
            next: None,
            total,
        })
    }
}

/// The conditions of a list, and the index that serves them in the order of the list.
struct Conditions {
    index: &'static str,
    conditions: String,
    values: Vec<Value>,
    /// Whether the counters know how many match.
    counted: bool,
}

impl Conditions {
    fn of(filter: &ListFilter, scope: i64) -> Self {
        let mut query = Self {
            index: match (&filter.context, filter.state) {
                (Some(_), _) => "tasks_by_context",
                (None, Some(state)) if state != TaskState::Completed => "tasks_by_state",
                (None, _) => "tasks_by_time",
            },
            conditions: String::from("scope = ?"),
            values: vec![Value::Integer(scope)],
            counted: filter.context.is_none() && filter.not_before.is_none(),
        };
        if let Some(context) = &filter.context {
            query.and("context = ?", Value::Text(context.as_str().to_owned()));
        }
        if let Some(state) = filter.state {
            query.and("state = ?", Value::from(state.number()));
        }
        if query.index == "tasks_by_state" {
            // Says that the index holds all that is asked for.
            query.conditions.push_str(" AND state <> 3");
        }
        if let Some(time) = filter.not_before {
            query.and("status_ms >= ?", Value::Integer(time.unix_ms()));
        }
        query
    }

    fn and(&mut self, condition: &str, value: Value) {
        self.conditions.push_str(" AND ");
        self.conditions.push_str(condition);
        self.values.push(value);
    }

    fn after(&mut self, key: &PageKey) {
        let time = Value::Integer(key.status_time.unix_ms());
        self.and("(status_ms, id) < (?, ?)", time);
        self.values.push(Value::Text(key.task.as_str().to_owned()));
    }

    fn page(&self) -> String {
        let (index, conditions) = (self.index, &self.conditions);
        format!(
            "SELECT tasks.number, tasks.last, seq, body, status_ms, id FROM tasks INDEXED BY {index}
             LEFT JOIN snapshots ON snapshots.task = tasks.number
             WHERE {conditions} ORDER BY status_ms DESC, id DESC LIMIT ?"
        )
    }

    fn total(&self, connection: &Connection) -> rusqlite::Result<u64> {
        let query = if self.counted {
            // The same conditions: scope, and perhaps state.
            format!(
                "SELECT coalesce(sum(count), 0) FROM totals WHERE {}",
                self.conditions
            )
        } else {
            let (index, conditions) = (self.index, &self.conditions);
            format!("SELECT count(*) FROM tasks INDEXED BY {index} WHERE {conditions}")
        };
        let total: i64 = connection
            .prepare_cached(&query)?
            .query_row(params_from_iter(&self.values), |row| row.get(0))?;
        Ok(u64::try_from(total).unwrap_or(0))
    }
}

/// Reads which tasks of a conversation wait for input, two at most.
pub(super) fn waiting(
    connection: &Connection,
    scope: &Scope,
    context: &ContextId,
) -> Result<Vec<TaskId>, Failure> {
    let Some(scope) = scope_number(connection, scope)? else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(
        "SELECT id FROM tasks INDEXED BY tasks_waiting
         WHERE scope = ?1 AND context = ?2 AND state = 6 LIMIT 2",
    )?;
    let ids = statement.query_map(params![scope, context.as_str()], |row| {
        Ok(row.get::<_, String>(0)?.into())
    })?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, SqliteStore};

    /// Whatever the filter, an index leads to the page; only a conversation's tasks are sorted.
    #[test]
    fn every_page_comes_from_an_index_in_order() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("nuncio.db");
        let _store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        let connection = Connection::open(&path).unwrap();
        for bits in 0..16_u8 {
            let filter = ListFilter {
                context: (bits & 1 != 0).then(|| "c".into()),
                state: (bits & 2 != 0).then_some(TaskState::Working),
                not_before: (bits & 4 != 0).then(|| Timestamp::from_unix_ms(1)),
            };
            let mut query = Conditions::of(&filter, 1);
            if bits & 8 != 0 {
                query.after(&PageKey {
                    status_time: Timestamp::from_unix_ms(2),
                    task: "t".into(),
                });
            }
            query.values.push(Value::Integer(50));
            let plan = format!("EXPLAIN QUERY PLAN {}", query.page());
            let mut statement = connection.prepare(&plan).unwrap();
            let steps = statement.query_map(params_from_iter(&query.values), |row| row.get(3));
            let steps: Vec<String> = steps.unwrap().map(Result::unwrap).collect();
            assert!(
                steps[0].starts_with("SEARCH tasks USING INDEX"),
                "{steps:?}"
            );
            let of_context = bits & 1 != 0;
            let sorts = steps.iter().any(|step| step.contains("TEMP"));
            assert_eq!(sorts, of_context, "{steps:?}");
            let bound = bits & 12 != 0 && !of_context;
            assert_eq!(steps[0].contains("status_ms"), bound, "{steps:?}");
        }
    }
}
