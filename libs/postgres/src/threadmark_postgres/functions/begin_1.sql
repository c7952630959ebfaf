-- Makes a thread live for a change: makes its row, or with p_waits revives the deleted one, of which the caller has the
-- key and the gate. Returns why not, with the epoch; NULL where it was done, or another change was quicker.
CREATE OR REPLACE FUNCTION tm.begin_1(
    p_thread text, p_epoch bigint, p_token bigint, p_owner text, p_continues text, p_now bigint, p_expires_at bigint,
    p_check bytea, p_expects text, p_waits boolean, OUT epoch bigint, OUT outcome text
) LANGUAGE plpgsql AS $body$
DECLARE
    v_live boolean;
    v_token bigint;
    v_ends bigint;
    v_deleted text;
BEGIN
    SELECT t.live, t.epoch, t.token, t.lease_ends, t.deleted_up_to
    INTO v_live, epoch, v_token, v_ends, v_deleted
    FROM tm.thread AS t
    WHERE t.thread_id = p_thread;
    IF v_live OR FOUND AND NOT p_waits THEN
        RETURN;
    END IF;
    outcome := coalesce(
        tm.refusal_1(
            p_epoch, p_token, false, NULL, p_continues,
            coalesce(epoch, -1), coalesce(v_token, 0), NULL, v_ends, v_deleted
        ),
        CASE WHEN p_expects <> '' THEN 'conflict' END
    );
    IF outcome IS NOT NULL THEN
        RETURN;
    ELSIF v_live IS NULL THEN
        INSERT INTO tm.thread (thread_id, epoch, live, created_at, token, owner, expires_at, checksum)
        VALUES (p_thread, p_now, true, p_now, 0, p_owner, p_expires_at, p_check)
        ON CONFLICT DO NOTHING;
    ELSE
        -- Nothing that was set of an earlier thread with this id stays.
        UPDATE tm.thread AS t
        SET live = true,
            created_at = p_now,
            owner = p_owner,
            title = NULL,
            folded_title = NULL,
            metadata = NULL,
            expires_at = p_expires_at,
            checksum = p_check
        WHERE t.thread_id = p_thread AND NOT t.live;
    END IF;
    IF FOUND THEN
        INSERT INTO tm.head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)
        VALUES (p_thread, '', '', '{}', 0, p_now, p_now / 60000000, p_owner)
        ON CONFLICT DO NOTHING;
    END IF;
END
$body$
