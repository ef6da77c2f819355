-- What agents keep of a conversation: last is the newest position, at_ms the time of the last write.
CREATE TABLE nuncio.sessions (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope   bigint NOT NULL,
    context text COLLATE "C" NOT NULL,
    last    bigint NOT NULL,
    at_ms   bigint NOT NULL,
    UNIQUE (scope, context)
);
CREATE INDEX sessions_by_time ON nuncio.sessions (at_ms, number);

-- A summary stands at the last position that it replaces.
CREATE TABLE nuncio.session_entries (
    session  bigint NOT NULL,
    position bigint NOT NULL,
    task     text COLLATE "C" NOT NULL,
    at_ms    bigint NOT NULL,
    body     text NOT NULL,
    PRIMARY KEY (session, position)
);

-- State by who shares it: the session, all sessions of a caller with an agent, all of an agent.
CREATE TABLE nuncio.session_states (
    session bigint NOT NULL,
    name    text COLLATE "C" NOT NULL,
    body    text NOT NULL,
    PRIMARY KEY (session, name)
);
CREATE TABLE nuncio.caller_states (
    scope bigint NOT NULL,
    name  text COLLATE "C" NOT NULL,
    body  text NOT NULL,
    PRIMARY KEY (scope, name)
);
CREATE TABLE nuncio.agent_states (
    workspace text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    body      text NOT NULL,
    PRIMARY KEY (workspace, agent, name)
);

-- The call trees of tasks; numbers tell what was written first.
CREATE TABLE nuncio.nodes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task   bigint NOT NULL,
    id     text COLLATE "C" NOT NULL,
    body   text NOT NULL,
    UNIQUE (task, id)
);

-- Whoever removes a task removes its call tree, be it a process that knows nothing of one.
CREATE FUNCTION nuncio.nodes_gone_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM nuncio.nodes n USING gone g WHERE n.task = g.number;
    RETURN NULL;
END $$;
CREATE TRIGGER nodes_gone AFTER DELETE ON nuncio.tasks REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION nuncio.nodes_gone_1();

-- Adds entries to a session and changes state, if the session ends at after; tells whether, and where
-- it ends. Who shares a state: 0 the session, 1 the caller's sessions, 2 the agent's; they come in one
-- order, whoever writes them, so that nobody waits in a circle. No value removes one. If more than
-- most_states share a scope then, nothing is written, and the error has the code NU001.
CREATE FUNCTION nuncio.session_append_1(
    workspace text, agent text, caller text, context text, after bigint,
    task text, at_ms bigint, bodies text[],
    shared_by int[], names text[], state_values text[], most_states bigint,
    OUT done boolean, OUT at_last bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    scope_no bigint;
    session_no bigint;
    c        record;
BEGIN
    LOOP
        SELECT s.number, n.number, n.last INTO scope_no, session_no, at_last
        FROM nuncio.scopes s JOIN nuncio.sessions n ON n.scope = s.number
        WHERE s.workspace = workspace AND s.agent = agent AND s.caller = caller
          AND n.context = context
        FOR UPDATE OF n;
        EXIT WHEN FOUND;
        at_last := 0;
        EXIT WHEN after <> 0;
        INSERT INTO nuncio.scopes (workspace, agent, caller)
        VALUES (workspace, agent, caller) ON CONFLICT DO NOTHING;
        -- Waits for whoever is beginning the same session.
        INSERT INTO nuncio.sessions (scope, context, last, at_ms)
        SELECT s.number, context, 0, at_ms FROM nuncio.scopes s
        WHERE s.workspace = workspace AND s.agent = agent AND s.caller = caller
        ON CONFLICT DO NOTHING;
    END LOOP;
    done := at_last = after;
    IF NOT done THEN
        RETURN;
    END IF;
    INSERT INTO nuncio.session_entries (session, position, task, at_ms, body)
    SELECT session_no, after + u.n, task, at_ms, u.body
    FROM unnest(bodies) WITH ORDINALITY AS u (body, n);
    at_last := after + cardinality(bodies);
    UPDATE nuncio.sessions n SET last = at_last, at_ms = greatest(n.at_ms, at_ms)
    WHERE n.number = session_no;
    FOR c IN
        SELECT * FROM unnest(shared_by, names, state_values)
            WITH ORDINALITY AS u (shared_by, name, body, n) ORDER BY u.n
    LOOP
        IF c.shared_by = 0 THEN
            IF c.body IS NULL THEN
                DELETE FROM nuncio.session_states x WHERE x.session = session_no AND x.name = c.name;
            ELSE
                INSERT INTO nuncio.session_states (session, name, body)
                VALUES (session_no, c.name, c.body)
                ON CONFLICT ON CONSTRAINT session_states_pkey DO UPDATE SET body = excluded.body;
            END IF;
        ELSIF c.shared_by = 1 THEN
            IF c.body IS NULL THEN
                DELETE FROM nuncio.caller_states x WHERE x.scope = scope_no AND x.name = c.name;
            ELSE
                INSERT INTO nuncio.caller_states (scope, name, body)
                VALUES (scope_no, c.name, c.body)
                ON CONFLICT ON CONSTRAINT caller_states_pkey DO UPDATE SET body = excluded.body;
            END IF;
        ELSE
            IF c.body IS NULL THEN
                DELETE FROM nuncio.agent_states x
                WHERE x.workspace = workspace AND x.agent = agent AND x.name = c.name;
            ELSE
                INSERT INTO nuncio.agent_states (workspace, agent, name, body)
                VALUES (workspace, agent, c.name, c.body)
                ON CONFLICT ON CONSTRAINT agent_states_pkey DO UPDATE SET body = excluded.body;
            END IF;
        END IF;
    END LOOP;
    IF array_remove(state_values, NULL) <> '{}' AND most_states < greatest(
        (SELECT count(*) FROM nuncio.session_states x WHERE x.session = session_no),
        (SELECT count(*) FROM nuncio.caller_states x WHERE x.scope = scope_no),
        (SELECT count(*) FROM nuncio.agent_states x
         WHERE x.workspace = workspace AND x.agent = agent)
    ) THEN
        RAISE EXCEPTION 'there are more states than there may be' USING ERRCODE = 'NU001';
    END IF;
END $$;

-- Puts a summary in the place of all entries up to a position; false if there is none at it.
CREATE FUNCTION nuncio.session_compact_1(
    workspace text, agent text, caller text, context text, through bigint, summary text
) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    session_no bigint;
BEGIN
    SELECT n.number INTO session_no
    FROM nuncio.scopes s JOIN nuncio.sessions n ON n.scope = s.number
    WHERE s.workspace = workspace AND s.agent = agent AND s.caller = caller
      AND n.context = context
    FOR UPDATE OF n;
    UPDATE nuncio.session_entries e SET body = summary
    WHERE e.session = session_no AND e.position = through;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM nuncio.session_entries e WHERE e.session = session_no AND e.position < through;
    RETURN true;
END $$;

-- Deletes sessions with the state of their contexts; they have been locked.
CREATE FUNCTION nuncio.sessions_drop_1(numbers bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM nuncio.session_entries WHERE session = ANY (numbers);
    DELETE FROM nuncio.session_states WHERE session = ANY (numbers);
    DELETE FROM nuncio.sessions WHERE number = ANY (numbers);
END $$;

-- Deletes a session; false if there is none.
CREATE FUNCTION nuncio.session_delete_1(workspace text, agent text, caller text, context text)
RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    session_no bigint;
BEGIN
    SELECT n.number INTO session_no
    FROM nuncio.scopes s JOIN nuncio.sessions n ON n.scope = s.number
    WHERE s.workspace = workspace AND s.agent = agent AND s.caller = caller
      AND n.context = context
    FOR UPDATE OF n;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM nuncio.sessions_drop_1(ARRAY[session_no]);
    RETURN true;
END $$;

-- Deletes sessions to which nothing has been written since a time, the oldest first: most at most, and
-- fewer if they have more than max_entries in all, but at least one. What somebody is at work with is
-- left for another time. Gives their number.
CREATE FUNCTION nuncio.sessions_prune_1(before_ms bigint, most bigint, max_entries bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    gone bigint[];
BEGIN
    SELECT array_agg(x.number) INTO gone FROM (
        SELECT old.number, sum(old.last) OVER w AS entries, row_number() OVER w AS place
        FROM (
            SELECT n.number, n.last, n.at_ms FROM nuncio.sessions n WHERE n.at_ms < before_ms
            ORDER BY n.at_ms, n.number LIMIT most FOR UPDATE SKIP LOCKED
        ) old
        WINDOW w AS (ORDER BY old.at_ms, old.number)
    ) x
    WHERE x.place = 1 OR x.entries <= max_entries;
    PERFORM nuncio.sessions_drop_1(gone);
    RETURN coalesce(cardinality(gone), 0);
END $$;

-- Writes nodes of a task, each in the place of the one of its id, or after the others while there are
-- fewer than most; false if there is no such task, which nobody removes meanwhile. Two who write to one
-- task take turns, so that there are never more.
CREATE FUNCTION nuncio.nodes_record_1(
    task text, workspace text, agent text, caller text, ids text[], bodies text[], most bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    task_no bigint;
    n       record;
BEGIN
    SELECT t.number INTO task_no
    FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
    WHERE t.id = task AND s.workspace = workspace AND s.agent = agent AND s.caller = caller
    FOR NO KEY UPDATE OF t;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    FOR n IN
        SELECT * FROM unnest(ids, bodies) WITH ORDINALITY AS u (id, body, place) ORDER BY u.place
    LOOP
        UPDATE nuncio.nodes x SET body = n.body WHERE x.task = task_no AND x.id = n.id;
        IF NOT FOUND THEN
            INSERT INTO nuncio.nodes (task, id, body)
            SELECT task_no, n.id, n.body
            WHERE (SELECT count(*) FROM nuncio.nodes x WHERE x.task = task_no) < most;
        END IF;
    END LOOP;
    RETURN true;
END $$;
