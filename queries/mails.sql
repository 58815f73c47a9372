-- MailChoiceList lists the members of a team who want mails and may sign in, with how they read numbers.
-- name: MailChoiceList :many
SELECT sqlc.embed(c), u.fahrenheit, u.hour12, u.month_first FROM mail_choices c JOIN users u ON u.id = c.user_id
WHERE c.team_id = @team_id AND u.disabled_at IS NULL AND (c.alerts OR c.morning OR c.weekly)
ORDER BY c.user_id;

-- name: MailChoiceGet :one
SELECT * FROM mail_choices WHERE team_id = @team_id AND user_id = @user_id;

-- MailChoicePut stores which mails a member wants. Alerts of the time before they were wanted are not reported.
-- name: MailChoicePut :exec
INSERT INTO mail_choices AS c (user_id, team_id, alerts, morning, weekly, told)
VALUES (@user_id, @team_id, @alerts, @morning, @weekly, @told)
ON CONFLICT (user_id, team_id) DO UPDATE SET alerts = excluded.alerts, morning = excluded.morning, weekly = excluded.weekly,
    told = CASE WHEN c.alerts THEN c.told ELSE excluded.told END;

-- name: MailChoiceSetTold :exec
UPDATE mail_choices SET told = @told WHERE team_id = @team_id AND user_id = @user_id;

-- MailChoiceGetByStop returns the choice of a link that stops mails, and the team.
-- name: MailChoiceGetByStop :one
SELECT t.name FROM mail_choices c JOIN teams t ON t.id = c.team_id WHERE c.stop = @stop;

-- MailChoiceStop ends all mails of the choice of a link.
-- name: MailChoiceStop :execrows
UPDATE mail_choices SET alerts = false, morning = false, weekly = false WHERE stop = @stop;

-- name: MailInsert :exec
INSERT INTO mails (team_id, user_id, kind, subject, plain, html, created_at, try_at)
VALUES (@team_id, @user_id, @kind, @subject, @plain, @html, @now, @now);

-- MailTake takes the mail that is due for the longest time: no other process takes it before a later time. A mail that the
-- person does not want any more, or may not get, has no address.
-- name: MailTake :one
UPDATE mails m SET try_at = @again_at, tries = m.tries + 1
FROM users u, mail_choices c
WHERE m.id = (SELECT n.id FROM mails n WHERE n.done_at IS NULL AND n.try_at <= @now ORDER BY n.try_at LIMIT 1 FOR UPDATE SKIP LOCKED)
  AND u.id = m.user_id AND c.user_id = m.user_id AND c.team_id = m.team_id
RETURNING m.id, m.kind, coalesce(m.subject, '')::text AS subject, coalesce(m.plain, '')::text AS plain,
    coalesce(m.html, '')::text AS html, m.created_at, m.tries, c.stop,
    CASE WHEN u.disabled_at IS NULL
              AND CASE m.kind WHEN 'alerts' THEN c.alerts WHEN 'morning' THEN c.morning ELSE c.weekly END
         THEN u.email ELSE '' END::text AS email;

-- MailEnd records that a mail was sent, or has failed permanently.
-- name: MailEnd :exec
UPDATE mails SET done_at = @done_at, error = @error, subject = NULL, plain = NULL, html = NULL WHERE id = @mail_id;

-- MailRetry records why a mail could not be sent, and when to try again.
-- name: MailRetry :exec
UPDATE mails SET try_at = @try_at, error = @error WHERE id = @mail_id;

-- MailErase deletes the mails of a team that were not sent, and its newest report. The next ones have the new names: what
-- the last day's mails about alerts said is reported again to those whose mail is deleted.
-- name: MailErase :execrows
WITH reports AS (UPDATE alert_rounds SET report = NULL, reported = '{}' WHERE alert_rounds.team_id = @team_id),
tellings AS (
    UPDATE mail_choices SET told = '{}' WHERE mail_choices.team_id = @team_id AND mail_choices.user_id IN (
        SELECT n.user_id FROM mails n WHERE n.team_id = @team_id AND n.kind = 'alerts' AND n.done_at IS NULL)
)
DELETE FROM mails WHERE mails.team_id = @team_id AND mails.done_at IS NULL;

-- MailFailureList lists the mails of a team that could not be sent so far, or never, since a time, the newest first.
-- name: MailFailureList :many
SELECT u.email, m.kind, m.created_at, m.done_at, coalesce(m.error, '')::text AS error FROM mails m JOIN users u ON u.id = m.user_id
WHERE m.team_id = @team_id AND m.error IS NOT NULL AND m.created_at > @since
ORDER BY m.created_at DESC, m.id LIMIT @most::bigint;

-- MailCount counts the mails that failed permanently since a time, and those that wait since before another one.
-- name: MailCount :one
SELECT count(*) FILTER (WHERE done_at > @failed_since::timestamptz AND error IS NOT NULL) AS failed,
       count(*) FILTER (WHERE done_at IS NULL AND created_at < @waiting_since::timestamptz) AS waiting,
       coalesce((array_agg(error ORDER BY created_at DESC) FILTER (WHERE error IS NOT NULL))[1], '')::text AS error
FROM mails;

-- MailPurge deletes the records of mails from before a time.
-- name: MailPurge :execrows
DELETE FROM mails WHERE id IN (SELECT m.id FROM mails m WHERE m.done_at < @before LIMIT @most::bigint);
