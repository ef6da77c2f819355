-- Writes a batch of creates (with a context) and appends (without) in the order given, each as if
-- it were alone, and tells what became of each. One call is one transaction: one round trip, one
-- commit.
--
-- The rules of states are not here: open_states has bit n for each state n that is not terminal,
-- from_states of an append bit n for each state n that may become its state.
--
-- Outcomes: 0 written, 1 the key has been used (by used_by), 2 somebody was quicker, 3 no such
-- task, 4 the state may not follow, 5 a task of that id exists.
CREATE FUNCTION nuncio.write_1(
    open_states int,
    part        int,
    workspaces  text[], agents text[], callers text[],
    ids         text[], contexts text[],
    afters      bigint[], epochs bigint[],
    counts      int[], payloads text[],
    states      int[], from_states int[], status_times bigint[],
    snapshots   text[], checkpoints text[], turns bigint[],
    leases      int[], -- 0 stays, 1 ends, 2 begins
    lease_owners text[], lease_terms_ms bigint[],
    keys        text[], hashes bytea[],
    hooks       text[], hook_bodies text[], hook_versions text[],
    requests    text[]
) RETURNS TABLE (
    item int, outcome int, used_by text, same_request boolean,
    at_last bigint, at_state int, at_epoch bigint, at_turn bigint, at_attempt bigint,
    at_owner text, at_checkpoint text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    w          record;
    t          record;
    scope_no   bigint;
    known      text[];
    task_no    bigint;
    new_epoch  bigint;
    moved      bigint[] := '{}';
    moved_to   int[] := '{}';
    moved_by   int[] := '{}';
BEGIN
    FOR w IN
        SELECT * FROM unnest(
            workspaces, agents, callers, ids, contexts, afters, epochs, counts, payloads,
            states, from_states, status_times, snapshots, checkpoints, turns,
            leases, lease_owners, lease_terms_ms, keys, hashes,
            hooks, hook_bodies, hook_versions, requests
        ) WITH ORDINALITY AS u (
            workspace, agent, caller, id, context, after, epoch, count, payload,
            state, from_states, status_ms, snapshot, checkpoint, turn,
            lease, lease_owner, lease_ms, key, hash,
            hook, hook_body, hook_version, request, n
        )
    LOOP
        item := w.n;
        outcome := 0;
        used_by := NULL;
        same_request := NULL;
        at_last := NULL;
        at_state := NULL;
        at_epoch := NULL;
        at_turn := NULL;
        at_attempt := NULL;
        at_owner := NULL;
        at_checkpoint := NULL;

        IF known IS DISTINCT FROM ARRAY[w.workspace, w.agent, w.caller] THEN
            SELECT s.number INTO scope_no FROM nuncio.scopes s
            WHERE s.workspace = w.workspace AND s.agent = w.agent AND s.caller = w.caller;
            known := ARRAY[w.workspace, w.agent, w.caller];
        END IF;

        IF w.context IS NOT NULL THEN
            IF scope_no IS NULL THEN
                INSERT INTO nuncio.scopes (workspace, agent, caller)
                VALUES (w.workspace, w.agent, w.caller) ON CONFLICT DO NOTHING;
                SELECT s.number INTO STRICT scope_no FROM nuncio.scopes s
                WHERE s.workspace = w.workspace AND s.agent = w.agent AND s.caller = w.caller;
            END IF;
            task_no := nextval('nuncio.task_numbers');
            IF w.key IS NOT NULL THEN
                -- Waits for whoever is writing the same key.
                INSERT INTO nuncio.keys (scope, key, task, request_hash)
                VALUES (scope_no, w.key, task_no, w.hash) ON CONFLICT DO NOTHING;
                IF NOT FOUND THEN
                    outcome := 1;
                    SELECT x.id, k.request_hash = w.hash INTO used_by, same_request
                    FROM nuncio.keys k JOIN nuncio.tasks x ON x.number = k.task
                    WHERE k.scope = scope_no AND k.key = w.key;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
            END IF;
            INSERT INTO nuncio.tasks (
                number, id, scope, context, state, status_ms, last, epoch, turn, attempt,
                lease_owner, lease_until, created_ms
            ) VALUES (
                task_no, w.id, scope_no, w.context, w.state, w.status_ms, w.count,
                CASE WHEN w.lease = 2 THEN 1 ELSE 0 END, 1, 1,
                w.lease_owner, clock_timestamp() + w.lease_ms * interval '1 millisecond',
                w.status_ms
            ) ON CONFLICT (id) DO NOTHING;
            IF NOT FOUND THEN
                DELETE FROM nuncio.keys k WHERE k.scope = scope_no AND k.key = w.key;
                outcome := 5;
                RETURN NEXT;
                CONTINUE;
            END IF;
            moved := moved || scope_no;
            moved_to := moved_to || w.state;
            moved_by := moved_by || 1;
        ELSE
            SELECT x.number, x.state, x.last, x.epoch, x.turn, x.attempt, x.lease_owner INTO t
            FROM nuncio.tasks x WHERE x.id = w.id AND x.scope = scope_no FOR UPDATE;
            IF NOT FOUND THEN
                outcome := 3;
                RETURN NEXT;
                CONTINUE;
            END IF;
            task_no := t.number;
            IF w.key IS NOT NULL THEN
                SELECT x.id, k.request_hash = w.hash INTO used_by, same_request
                FROM nuncio.keys k JOIN nuncio.tasks x ON x.number = k.task
                WHERE k.scope = scope_no AND k.key = w.key;
                IF FOUND THEN
                    outcome := 1;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
            END IF;
            IF t.last <> w.after OR open_states & (1 << t.state) = 0
               OR t.epoch <> coalesce(w.epoch, t.epoch) THEN
                outcome := 2;
            ELSIF w.from_states & (1 << t.state) = 0 THEN
                outcome := 4;
            END IF;
            IF outcome <> 0 THEN
                SELECT c.body INTO at_checkpoint FROM nuncio.checkpoints c WHERE c.task = task_no;
                at_last := t.last;
                at_state := t.state;
                at_epoch := t.epoch;
                at_turn := t.turn;
                at_attempt := t.attempt;
                at_owner := t.lease_owner;
                RETURN NEXT;
                CONTINUE;
            END IF;
            IF w.key IS NOT NULL THEN
                INSERT INTO nuncio.keys (scope, key, task, request_hash)
                VALUES (scope_no, w.key, task_no, w.hash) ON CONFLICT DO NOTHING;
                IF NOT FOUND THEN
                    outcome := 1;
                    SELECT x.id, k.request_hash = w.hash INTO used_by, same_request
                    FROM nuncio.keys k JOIN nuncio.tasks x ON x.number = k.task
                    WHERE k.scope = scope_no AND k.key = w.key;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
            END IF;
            UPDATE nuncio.tasks x SET
                last = w.after + w.count,
                state = w.state,
                status_ms = greatest(x.status_ms, w.status_ms),
                turn = coalesce(w.turn, x.turn),
                attempt = CASE WHEN w.turn IS NULL THEN x.attempt ELSE 1 END,
                epoch = CASE w.lease WHEN 2 THEN x.epoch + 1 ELSE x.epoch END,
                lease_owner = CASE w.lease WHEN 0 THEN x.lease_owner ELSE w.lease_owner END,
                lease_until = CASE w.lease WHEN 0 THEN x.lease_until
                    ELSE clock_timestamp() + w.lease_ms * interval '1 millisecond' END
            WHERE x.number = task_no RETURNING x.epoch INTO new_epoch;
            at_epoch := new_epoch;
            IF t.state <> w.state THEN
                moved := moved || scope_no || scope_no;
                moved_to := moved_to || t.state || w.state;
                moved_by := moved_by || -1 || 1;
            END IF;
        END IF;

        IF w.payload IS NOT NULL THEN
            INSERT INTO nuncio.log (task, first, count, format, payload)
            VALUES (task_no, w.after + 1, w.count, 1, w.payload);
        END IF;
        IF w.snapshot IS NOT NULL THEN
            INSERT INTO nuncio.snapshots (task, seq, format, body)
            VALUES (task_no, w.after + w.count, 1, w.snapshot)
            ON CONFLICT (task) DO UPDATE
            SET seq = excluded.seq, format = excluded.format, body = excluded.body;
        END IF;
        IF w.checkpoint IS NOT NULL THEN
            INSERT INTO nuncio.checkpoints (task, body) VALUES (task_no, w.checkpoint)
            ON CONFLICT (task) DO UPDATE SET body = excluded.body;
        END IF;
        IF w.request IS NOT NULL THEN
            INSERT INTO nuncio.requests (task, position, body)
            VALUES (task_no, w.after + 1, w.request);
        END IF;
        IF w.hook IS NOT NULL THEN
            INSERT INTO nuncio.push_configs (task, id, cursor, format, body, version)
            VALUES (task_no, w.hook, w.after, 1, w.hook_body, w.hook_version)
            ON CONFLICT (task, id) DO UPDATE
            SET format = excluded.format, body = excluded.body, version = excluded.version;
        END IF;
        RETURN NEXT;
    END LOOP;

    INSERT INTO nuncio.totals (scope, state, part, count)
    SELECT m.scope, m.state, part, sum(m.by)
    FROM unnest(moved, moved_to, moved_by) AS m (scope, state, by)
    GROUP BY m.scope, m.state HAVING sum(m.by) <> 0 ORDER BY m.scope, m.state
    ON CONFLICT (scope, state, part) DO UPDATE SET count = totals.count + excluded.count;
END $$;
