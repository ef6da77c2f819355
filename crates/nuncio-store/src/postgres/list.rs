//! Lists: pages by index, totals by counters, both as of one moment.

use nuncio_protocol::{ContextId, TaskId, TaskState, Timestamp};

use super::connection::Parameter;
use super::link::Links;
use super::rows::{self, TASK, TASK_JOINS, column, number, scope_texts, stored};
use crate::{ListFilter, PageKey, Scope, StoreError, TaskPage};

/// The statement of a page, and the values of its parameters in their order.
pub(super) struct Query<'a> {
    pub(super) sql: String,
    values: Vec<Box<dyn tokio_postgres::types::ToSql + Sync + Send + 'a>>,
}

impl<'a> Query<'a> {
    pub(super) fn of(
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> Self {
        let mut query = Self {
            sql: String::new(),
            values: Vec::new(),
        };
        for text in scope_texts(scope) {
            query.value(text);
        }
        // The few tasks of a conversation are found by it and sorted; the sums keep the planner from
        // going through all tasks of the scope by another index instead.
        let (time, state) = match filter.context {
            Some(_) => ("(t.status_ms + 0)", "(t.state + 0)"),
            None => ("t.status_ms", "t.state"),
        };
        let mut conditions = String::from("t.scope = (SELECT number FROM mine)");
        if let Some(context) = &filter.context {
            let n = query.value(stored(context.as_str()));
            conditions.push_str(&format!(" AND t.context = ${n}"));
        }
        if let Some(wanted) = filter.state {
            let n = query.value(wanted.number());
            conditions.push_str(&format!(" AND {state} = ${n}"));
            if filter.context.is_none() && wanted != TaskState::Completed {
                // Says that the index of these holds all that is asked for.
                conditions.push_str(" AND t.state <> 3");
            }
        }
        if let Some(not_before) = filter.not_before {
            let n = query.value(not_before.unix_ms());
            conditions.push_str(&format!(" AND {time} >= ${n}"));
        }
        let total = if filter.context.is_none() && filter.not_before.is_none() {
            format!(
                "SELECT coalesce(sum(t.count), 0)::bigint FROM nuncio.totals t WHERE {conditions}"
            )
        } else {
            format!("SELECT count(*) FROM nuncio.tasks t WHERE {conditions}")
        };
        if let Some(from) = from {
            let from_ms = query.value(from.status_time.unix_ms());
            let id = query.value(stored(from.task.as_str()));
            conditions.push_str(&format!(" AND ({time}, t.id) < (${from_ms}, ${id})"));
        }
        let size = i64::try_from(size).unwrap_or(i64::MAX).saturating_add(1);
        let limit = query.value(size);
        query.sql = format!(
            "WITH mine AS MATERIALIZED (
                 SELECT number FROM nuncio.scopes
                 WHERE workspace = $1 AND agent = $2 AND caller = $3
             ), page AS MATERIALIZED (
                 SELECT t.number, t.last, t.status_ms, t.id FROM nuncio.tasks t
                 WHERE {conditions} ORDER BY {time} DESC, t.id DESC LIMIT ${limit}
             )
             SELECT x.total, t.last, t.status_ms, t.id, {TASK}
             FROM (SELECT ({total}) AS total) x LEFT JOIN page t ON true {TASK_JOINS}
             ORDER BY t.status_ms DESC, t.id DESC"
        );
        query
    }

    fn value(&mut self, value: impl tokio_postgres::types::ToSql + Sync + Send + 'a) -> usize {
        self.values.push(Box::new(value));
        self.values.len()
    }

    pub(super) fn parameters(&self) -> Vec<Parameter<'_>> {
        self.values
            .iter()
            .map(|value| &**value as Parameter<'_>)
            .collect()
    }
}

/// Reads a page.
pub(super) async fn page(
    links: &Links,
    scope: &Scope,
    filter: &ListFilter,
    from: Option<&PageKey>,
    size: usize,
) -> Result<TaskPage, StoreError> {
    let query = Query::of(scope, filter, from, size);
    let rows = links.read(&query.sql, &query.parameters()).await?;
    let mut page = TaskPage {
        tasks: Vec::with_capacity(size.min(rows.len())),
        next: None,
        total: 0,
    };
    for row in &rows {
        page.total = number(row, 0)?;
        let Some(id) = column::<Option<&str>>(row, 3)? else {
            break;
        };
        if page.tasks.len() == size {
            page.next = rows.get(size.wrapping_sub(1)).map(key).transpose()?;
            break;
        }
        let task = rows::task(row, 4, number(row, 1)?)?;
        debug_assert_eq!(task.id.as_str(), rows::original(id));
        page.tasks.push(task);
    }
    Ok(page)
}

fn key(row: &tokio_postgres::Row) -> Result<PageKey, StoreError> {
    Ok(PageKey {
        status_time: Timestamp::from_unix_ms(column(row, 2)?),
        task: rows::original(column(row, 3)?).into(),
    })
}

/// Reads which tasks of a conversation wait for input, two at most.
pub(super) async fn waiting(
    links: &Links,
    scope: &Scope,
    context: &ContextId,
) -> Result<Vec<TaskId>, StoreError> {
    let sql = "SELECT t.id FROM nuncio.tasks t
        WHERE t.scope = (SELECT number FROM nuncio.scopes
                         WHERE workspace = $1 AND agent = $2 AND caller = $3)
          AND t.context = $4 AND t.state = 6 LIMIT 2";
    let [workspace, agent, caller] = scope_texts(scope);
    let context = stored(context.as_str());
    let rows = links
        .read(sql, &[&workspace, &agent, &caller, &context])
        .await?;
    let id = |row| Ok(rows::original(column(row, 0)?).into());
    rows.iter().map(id).collect()
}
