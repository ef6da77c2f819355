-- The newest position that is no longer in the log: 0, or for a compacted log its last one.
ALTER TABLE nuncio.tasks ADD COLUMN forgotten bigint NOT NULL DEFAULT 0;

-- The keys of a task go with it.
CREATE INDEX keys_by_task ON nuncio.keys (task);

-- Functions, because each statement of one sees what was committed before it: what has come to a
-- task until it was locked is removed with it. A task that somebody is just doing something with is
-- left for another time. What they count stands in a part of the totals of its own, -1.

-- Removes those of some tasks that have ended (states) before a time, with all that is theirs.
CREATE FUNCTION nuncio.expire_1(numbers bigint[], ended int[], before_ms bigint)
RETURNS TABLE (workspace text, agent text, caller text, id text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    gone bigint[];
BEGIN
    SELECT array_agg(x.number) INTO gone FROM (
        SELECT t.number FROM nuncio.tasks t
        WHERE t.number = ANY (numbers) AND t.state = ANY (ended) AND t.status_ms < before_ms
        ORDER BY t.id FOR UPDATE SKIP LOCKED
    ) x;
    DELETE FROM nuncio.log WHERE task = ANY (gone);
    DELETE FROM nuncio.snapshots WHERE task = ANY (gone);
    DELETE FROM nuncio.checkpoints WHERE task = ANY (gone);
    DELETE FROM nuncio.requests WHERE task = ANY (gone);
    DELETE FROM nuncio.keys WHERE task = ANY (gone);
    DELETE FROM nuncio.push_configs WHERE task = ANY (gone);
    INSERT INTO nuncio.totals (scope, state, part, count)
    SELECT t.scope, t.state, -1, -count(*) FROM nuncio.tasks t WHERE t.number = ANY (gone)
    GROUP BY t.scope, t.state ORDER BY t.scope, t.state
    ON CONFLICT (scope, state, part) DO UPDATE SET count = totals.count + excluded.count;
    RETURN QUERY
        WITH removed AS (
            DELETE FROM nuncio.tasks t WHERE t.number = ANY (gone) RETURNING t.scope, t.id
        )
        SELECT s.workspace, s.agent, s.caller, r.id
        FROM removed r JOIN nuncio.scopes s ON s.number = r.scope;
END $$;

-- Removes the logs of such tasks, and what accompanied their messages, unless a webhook still needs one. The snapshot has to be that of
-- the end; where it is not, a newer one is given.
CREATE FUNCTION nuncio.compact_1(
    numbers bigint[], ended int[], before_ms bigint,
    given_tasks bigint[], given_seqs bigint[], given_bodies text[]
) RETURNS TABLE (workspace text, agent text, caller text, id text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    locked bigint[];
    whole  bigint[];
BEGIN
    SELECT array_agg(x.number) INTO locked FROM (
        SELECT t.number FROM nuncio.tasks t
        WHERE t.number = ANY (numbers) AND t.state = ANY (ended) AND t.status_ms < before_ms
          AND t.forgotten = 0
        ORDER BY t.id FOR UPDATE SKIP LOCKED
    ) x;
    INSERT INTO nuncio.snapshots (task, seq, format, body)
    SELECT g.task, g.seq, 1, g.body
    FROM unnest(given_tasks, given_seqs, given_bodies) AS g (task, seq, body)
    JOIN nuncio.tasks t ON t.number = g.task AND t.last = g.seq
    WHERE g.task = ANY (locked)
    ON CONFLICT (task) DO UPDATE
    SET seq = excluded.seq, format = excluded.format, body = excluded.body;
    SELECT array_agg(t.number) INTO whole
    FROM nuncio.tasks t JOIN nuncio.snapshots n ON n.task = t.number AND n.seq = t.last
    WHERE t.number = ANY (locked)
      AND NOT EXISTS (SELECT FROM nuncio.push_configs p
                      WHERE p.task = t.number AND p.cursor < t.last);
    DELETE FROM nuncio.log WHERE task = ANY (whole);
    DELETE FROM nuncio.requests WHERE task = ANY (whole);
    RETURN QUERY
        WITH compacted AS (
            UPDATE nuncio.tasks t SET forgotten = t.last WHERE t.number = ANY (whole)
            RETURNING t.scope, t.id
        )
        SELECT s.workspace, s.agent, s.caller, c.id
        FROM compacted c JOIN nuncio.scopes s ON s.number = c.scope;
END $$;

-- Stores a task of another store. Outcomes: 0 stored, 1 a task of that id is there, 2 a key leads
-- to another one; then nothing is written.
CREATE FUNCTION nuncio.import_1(
    workspace text, agent text, caller text,
    id text, context text, state int, status_ms bigint,
    last bigint, epoch bigint, turn bigint, attempt bigint, forgotten bigint,
    firsts bigint[], counts int[], payloads text[],
    snapshot text, checkpoint text,
    request_positions bigint[], request_bodies text[],
    keys text[], hashes bytea[],
    hooks text[], hook_cursors bigint[], hook_bodies text[], hook_versions text[],
    OUT outcome int, OUT used_key text, OUT used_by text
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    scope_no bigint;
    task_no  bigint;
    k        record;
BEGIN
    outcome := 1;
    PERFORM FROM nuncio.tasks t WHERE t.id = id;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO nuncio.scopes (workspace, agent, caller)
    VALUES (workspace, agent, caller) ON CONFLICT DO NOTHING;
    SELECT s.number INTO STRICT scope_no FROM nuncio.scopes s
    WHERE s.workspace = workspace AND s.agent = agent AND s.caller = caller;
    task_no := nextval('nuncio.task_numbers');
    FOR k IN SELECT u.key, u.hash FROM unnest(keys, hashes) AS u (key, hash) ORDER BY u.key LOOP
        -- Waits for whoever is writing the same key.
        INSERT INTO nuncio.keys (scope, key, task, request_hash)
        VALUES (scope_no, k.key, task_no, k.hash) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            DELETE FROM nuncio.keys x WHERE x.task = task_no;
            SELECT x.id INTO used_by FROM nuncio.keys y JOIN nuncio.tasks x ON x.number = y.task
            WHERE y.scope = scope_no AND y.key = k.key;
            outcome := 2;
            used_key := k.key;
            RETURN;
        END IF;
    END LOOP;
    INSERT INTO nuncio.tasks (
        number, id, scope, context, state, status_ms, last, epoch, turn, attempt, created_ms,
        forgotten
    ) VALUES (
        task_no, id, scope_no, context, state, status_ms, last, epoch, turn, attempt, status_ms,
        forgotten
    ) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        DELETE FROM nuncio.keys x WHERE x.task = task_no;
        RETURN;
    END IF;
    INSERT INTO nuncio.log (task, first, count, format, payload)
    SELECT task_no, u.first, u.count, 1, u.payload
    FROM unnest(firsts, counts, payloads) AS u (first, count, payload);
    IF snapshot IS NOT NULL THEN
        INSERT INTO nuncio.snapshots (task, seq, format, body) VALUES (task_no, last, 1, snapshot);
    END IF;
    IF checkpoint IS NOT NULL THEN
        INSERT INTO nuncio.checkpoints (task, body) VALUES (task_no, checkpoint);
    END IF;
    INSERT INTO nuncio.requests (task, position, body)
    SELECT task_no, u.position, u.body
    FROM unnest(request_positions, request_bodies) AS u (position, body);
    INSERT INTO nuncio.push_configs (task, id, cursor, format, body, version)
    SELECT task_no, u.id, u.cursor, 1, u.body, u.version
    FROM unnest(hooks, hook_cursors, hook_bodies, hook_versions) AS u (id, cursor, body, version);
    INSERT INTO nuncio.totals (scope, state, part, count) VALUES (scope_no, state, -1, 1)
    ON CONFLICT ON CONSTRAINT totals_pkey DO UPDATE SET count = totals.count + 1;
    outcome := 0;
END $$;
