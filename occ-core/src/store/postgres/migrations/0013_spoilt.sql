-- Leaves work alone for a while that nobody can read: claims whose lease has lapsed, which frees their lanes and gives their attempts
-- back, and queued work without an attempt left, which gets them all back. Otherwise it would be found first by every recovery.
CREATE FUNCTION set_aside_lost(keys text[], pause bigint, max_attempts integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment CONSTANT bigint := present();
BEGIN
    UPDATE work SET state = 'queued', available_at = moment + pause, attempts = greatest(attempts - 1, 0),
        claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
    WHERE key = ANY (keys) AND state = 'claimed' AND lease_expires_at <= moment;
    UPDATE work SET available_at = moment + pause, attempts = extra_attempts
    WHERE key = ANY (keys) AND state = 'queued' AND attempts > 0 AND attempts - extra_attempts >= max_attempts;
END $$;
