-- Whether there is nothing to deliver any more, ever: the task has ended, and all of it is delivered or
-- given up. An older process leaves it false, which costs a look.
ALTER TABLE nuncio.push_configs ADD COLUMN done boolean NOT NULL DEFAULT false;
CREATE INDEX push_configs_open ON nuncio.push_configs (task) WHERE NOT done;

-- How the calls of a webhook have gone since the last one that was taken; most webhooks have no row.
CREATE TABLE nuncio.push_states (
    task             bigint NOT NULL,
    id               text COLLATE "C" NOT NULL,
    attempts         bigint NOT NULL,
    refusals         bigint NOT NULL,
    upto             bigint NOT NULL,
    failing_for_ms   bigint NOT NULL,
    down_for_ms      bigint NOT NULL,
    failing_since_ms bigint,
    last_call_ms     bigint,
    next_call_ms     bigint,
    disabled         text,
    PRIMARY KEY (task, id)
);

-- Events that were given up.
CREATE TABLE nuncio.push_letters (
    task        bigint NOT NULL,
    id          text COLLATE "C" NOT NULL,
    position    bigint NOT NULL,
    given_up_ms bigint NOT NULL,
    attempts    bigint NOT NULL,
    cause       text NOT NULL,
    requested   boolean NOT NULL,
    PRIMARY KEY (task, id, position)
);
CREATE INDEX push_letters_by_time   ON nuncio.push_letters (given_up_ms);
CREATE INDEX push_letters_requested ON nuncio.push_letters (task, id) WHERE requested;

-- The log of calls.
CREATE TABLE nuncio.push_calls (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task       bigint NOT NULL,
    id         text COLLATE "C" NOT NULL,
    first      bigint NOT NULL,
    last       bigint NOT NULL,
    message_id text NOT NULL,
    attempt    bigint NOT NULL,
    at_ms      bigint NOT NULL,
    took_ms    bigint NOT NULL,
    outcome    text NOT NULL
);
CREATE INDEX push_calls_by_webhook ON nuncio.push_calls (task, id, number);
CREATE INDEX push_calls_by_time    ON nuncio.push_calls (at_ms);

-- Who delivers to which webhook, named by the ids that callers see, and until when by the clock of
-- the database.
CREATE TABLE nuncio.push_claims (
    task  text COLLATE "C" NOT NULL,
    id    text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (task, id)
) WITH (fillfactor = 50);

-- A webhook that is replaced begins anew, and with one that is deleted goes all that is known of it:
-- whoever does it, be it write_1 or a process that knows nothing of these tables.
CREATE FUNCTION nuncio.push_replaced_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM nuncio.push_states s WHERE s.task = NEW.task AND s.id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER replaced AFTER UPDATE OF body ON nuncio.push_configs
    FOR EACH ROW EXECUTE FUNCTION nuncio.push_replaced_1();

CREATE FUNCTION nuncio.push_deleted_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM nuncio.push_states s WHERE s.task = OLD.task AND s.id = OLD.id;
    DELETE FROM nuncio.push_letters l WHERE l.task = OLD.task AND l.id = OLD.id;
    DELETE FROM nuncio.push_calls c WHERE c.task = OLD.task AND c.id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER deleted AFTER DELETE ON nuncio.push_configs
    FOR EACH ROW EXECUTE FUNCTION nuncio.push_deleted_1();

-- Whoever writes several of these tables locks the webhook first, so that nobody waits in a circle.

-- Claims a webhook whose claim is the owner's, or over; of two who find it over one gets it, and the
-- other is not kept waiting.
CREATE FUNCTION nuncio.push_claim_1(task text, id text, owner text, term_ms bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO nuncio.push_claims (task, id, owner, until)
    SELECT $1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond'
    WHERE NOT EXISTS (SELECT FROM nuncio.push_claims c WHERE c.task = $1 AND c.id = $2)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM FROM nuncio.push_claims c
    WHERE c.task = $1 AND c.id = $2 AND (c.owner = $3 OR c.until <= clock_timestamp())
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE nuncio.push_claims c
    SET owner = $3, until = clock_timestamp() + $4 * interval '1 millisecond'
    WHERE c.task = $1 AND c.id = $2;
    RETURN true;
END $$;

-- Notes what a call came to; false if the claim is lost, which is locked so that it stays until this
-- is committed. No state: there is nothing to say. letter is the position of a dead letter, which
-- goes if there is no cause. open_states has bit n for each state n that is not terminal.
CREATE FUNCTION nuncio.push_settle_1(
    task text, id text, owner text, cursor bigint,
    attempts bigint, refusals bigint, upto bigint, failing_for_ms bigint, down_for_ms bigint,
    failing_since_ms bigint, last_call_ms bigint, next_call_ms bigint, disabled text,
    letter bigint, given_up_ms bigint, letter_attempts bigint, cause text, requested boolean,
    max_letters bigint, open_states int
) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    w       record;
    task_no bigint;
BEGIN
    IF $3 IS NOT NULL THEN
        PERFORM FROM nuncio.push_claims c
        WHERE c.task = $1 AND c.id = $2 AND c.owner = $3 AND c.until > clock_timestamp()
        FOR SHARE;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    SELECT p.task, p.cursor, t.last, t.state INTO w
    FROM nuncio.push_configs p JOIN nuncio.tasks t ON t.number = p.task
    WHERE t.id = $1 AND p.id = $2 FOR NO KEY UPDATE OF p;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    task_no := w.task;
    IF w.cursor < $4 THEN
        UPDATE nuncio.push_configs p
        SET cursor = $4, done = ($4 >= w.last AND $20 & (1 << w.state) = 0)
        WHERE p.task = task_no AND p.id = $2;
    END IF;
    IF $5 IS NULL THEN
        DELETE FROM nuncio.push_states s WHERE s.task = task_no AND s.id = $2;
    ELSE
        INSERT INTO nuncio.push_states (
            task, id, attempts, refusals, upto, failing_for_ms, down_for_ms,
            failing_since_ms, last_call_ms, next_call_ms, disabled
        ) VALUES (task_no, $2, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (task, id) DO UPDATE SET
            attempts = excluded.attempts, refusals = excluded.refusals, upto = excluded.upto,
            failing_for_ms = excluded.failing_for_ms, down_for_ms = excluded.down_for_ms,
            failing_since_ms = excluded.failing_since_ms, last_call_ms = excluded.last_call_ms,
            next_call_ms = excluded.next_call_ms, disabled = excluded.disabled;
    END IF;
    IF $14 IS NULL THEN
        RETURN true;
    END IF;
    IF $17 IS NULL THEN
        DELETE FROM nuncio.push_letters l
        WHERE l.task = task_no AND l.id = $2 AND l.position = $14;
        RETURN true;
    END IF;
    INSERT INTO nuncio.push_letters (task, id, position, given_up_ms, attempts, cause, requested)
    VALUES (task_no, $2, $14, $15, $16, $17, $18)
    ON CONFLICT (task, id, position) DO UPDATE SET
        given_up_ms = excluded.given_up_ms, attempts = excluded.attempts,
        cause = excluded.cause, requested = excluded.requested;
    DELETE FROM nuncio.push_letters l
    WHERE l.task = task_no AND l.id = $2 AND l.position <= (
        SELECT x.position FROM nuncio.push_letters x WHERE x.task = task_no AND x.id = $2
        ORDER BY x.position DESC LIMIT 1 OFFSET $19);
    RETURN true;
END $$;

-- Marks dead letters of one webhook, which is enabled again, and gives their number.
CREATE FUNCTION nuncio.push_redeliver_1(task text, id text, letter bigint, since_ms bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    task_no bigint;
    marked  bigint;
BEGIN
    SELECT p.task INTO task_no FROM nuncio.push_configs p
    WHERE p.task = (SELECT t.number FROM nuncio.tasks t WHERE t.id = $1) AND p.id = $2
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    UPDATE nuncio.push_letters l SET requested = true
    WHERE l.task = task_no AND l.id = $2
      AND ($3 IS NULL OR l.position = $3) AND ($4 IS NULL OR l.given_up_ms >= $4);
    GET DIAGNOSTICS marked = ROW_COUNT;
    DELETE FROM nuncio.push_states s WHERE s.task = task_no AND s.id = $2;
    RETURN marked;
END $$;

-- Writes calls to the log, one a row, and drops the oldest ones of each webhook beyond keep.
CREATE FUNCTION nuncio.push_record_1(
    tasks text[], ids text[], firsts bigint[], lasts bigint[], message_ids text[],
    attempts bigint[], times bigint[], spans bigint[], outcomes text[], keep bigint
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    w record;
BEGIN
    INSERT INTO nuncio.push_calls
        (task, id, first, last, message_id, attempt, at_ms, took_ms, outcome)
    SELECT p.task, p.id, u.first, u.last, u.message_id, u.attempt, u.at_ms, u.took_ms, u.outcome
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) WITH ORDINALITY
        AS u (task, id, first, last, message_id, attempt, at_ms, took_ms, outcome, n)
    JOIN nuncio.tasks t ON t.id = u.task
    JOIN nuncio.push_configs p ON p.task = t.number AND p.id = u.id
    ORDER BY u.n FOR KEY SHARE OF p; -- a webhook that is just being deleted takes its calls along
    -- In one order, whoever does it.
    FOR w IN
        SELECT DISTINCT t.number AS task, u.id FROM unnest($1, $2) AS u (task, id)
        JOIN nuncio.tasks t ON t.id = u.task ORDER BY t.number, u.id
    LOOP
        DELETE FROM nuncio.push_calls c
        WHERE c.task = w.task AND c.id = w.id AND c.number <= (
            SELECT x.number FROM nuncio.push_calls x WHERE x.task = w.task AND x.id = w.id
            ORDER BY x.number DESC LIMIT 1 OFFSET $10);
    END LOOP;
END $$;
