-- Whose the tasks and conversations of agents elsewhere are, which are kept there: kind 0 is a task, 1 a
-- conversation, at_ms the time when it was taken last. Of one agent an id is one caller's.
CREATE TABLE nuncio.owned (
    agent text COLLATE "C" NOT NULL,
    kind  int NOT NULL,
    id    text COLLATE "C" NOT NULL,
    scope bigint NOT NULL,
    at_ms bigint NOT NULL,
    PRIMARY KEY (agent, kind, id)
);
CREATE INDEX owned_by_scope ON nuncio.owned (scope, kind);
CREATE INDEX owned_by_time ON nuncio.owned (at_ms);

-- Makes ids a caller's own; false, and nothing is written, if one is somebody else's. They come in one
-- order, whoever takes them, so that nobody waits in a circle.
CREATE FUNCTION nuncio.owned_take_1(
    workspace text, agent text, caller text, kinds int[], ids text[], at_ms bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    scope_no bigint;
    taken    bigint;
BEGIN
    INSERT INTO nuncio.scopes (workspace, agent, caller)
    VALUES (workspace, agent, caller) ON CONFLICT DO NOTHING;
    SELECT s.number INTO scope_no FROM nuncio.scopes s
    WHERE s.workspace = workspace AND s.agent = agent AND s.caller = caller;
    BEGIN
        INSERT INTO nuncio.owned AS o (agent, kind, id, scope, at_ms)
        SELECT agent, u.kind, u.id, scope_no, at_ms
        FROM unnest(kinds, ids) WITH ORDINALITY AS u (kind, id, n) ORDER BY u.n
        ON CONFLICT ON CONSTRAINT owned_pkey DO UPDATE
        SET at_ms = greatest(o.at_ms, excluded.at_ms) WHERE o.scope = excluded.scope;
        GET DIAGNOSTICS taken = ROW_COUNT;
        IF taken < cardinality(ids) THEN
            RAISE EXCEPTION 'one of them is somebody else''s' USING ERRCODE = 'NU002';
        END IF;
    EXCEPTION WHEN SQLSTATE 'NU002' THEN
        RETURN false;
    END;
    RETURN true;
END $$;
