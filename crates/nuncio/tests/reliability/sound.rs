//! Whether what PostgreSQL holds is in itself right.

use crate::database::Database;

/// Logs without gaps, one end for each task, one task for each key, totals that add up; gives the
/// highest number of attempts that a task has seen.
pub(crate) async fn is_sound(database: &Database) -> i64 {
    let client = database.client().await;
    for (what, query) in [
        (
            "logs that do not reach where their task stands",
            "SELECT count(*) FROM nuncio.tasks t WHERE t.last <> (
                 SELECT coalesce(sum(l.count), 0) FROM nuncio.log l WHERE l.task = t.number)",
        ),
        (
            "gaps and overlaps in logs",
            "SELECT count(*) FROM (
                 SELECT first, 1 + coalesce(lag(first + count - 1)
                     OVER (PARTITION BY task ORDER BY first), 0) AS due FROM nuncio.log
             ) l WHERE first <> due",
        ),
        (
            "tasks that ended more than once",
            "SELECT count(*) FROM (
                 SELECT l.task FROM nuncio.log l,
                     jsonb_array_elements(l.payload::jsonb) AS event
                 WHERE event #>> '{statusUpdate,status,state}' IN ('TASK_STATE_COMPLETED',
                     'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED')
                 GROUP BY l.task HAVING count(*) > 1) t",
        ),
        (
            "tasks without a key of their own",
            "SELECT abs((SELECT count(*) FROM nuncio.tasks)
                 - (SELECT count(DISTINCT task) FROM nuncio.keys))",
        ),
        (
            "totals that do not add up",
            "SELECT count(*) FROM (
                 SELECT scope, state, sum(count)::bigint AS said FROM nuncio.totals
                     GROUP BY scope, state HAVING sum(count) <> 0) x
             FULL JOIN (
                 SELECT scope, state, count(*) AS there FROM nuncio.tasks GROUP BY scope, state) y
             USING (scope, state) WHERE said IS DISTINCT FROM there",
        ),
    ] {
        let wrong: i64 = client.query_one(query, &[]).await.unwrap().get(0);
        assert_eq!(wrong, 0, "{what}");
    }
    let attempts = "SELECT coalesce(max(attempt), 0) FROM nuncio.tasks";
    client.query_one(attempts, &[]).await.unwrap().get(0)
}
