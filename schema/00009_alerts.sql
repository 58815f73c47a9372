-- +goose Up

-- alert_rounds has one row per team. The processes that notify share the teams: each takes the row that was tried least
-- recently, and holds its lock for the transaction in which it changes the alerts of the team and writes its mails.
-- So no alert begins twice and no mail is written twice. report is the newest morning report as people read it; reported has
-- the verdicts of that report by night and person, with which the next one finds what changed through late data.
CREATE TABLE alert_rounds (
    team_id      uuid PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    attempted_at timestamptz NOT NULL DEFAULT 'epoch',
    evaluated_at timestamptz NOT NULL DEFAULT 'epoch',
    nights_at    timestamptz NOT NULL DEFAULT 'epoch',
    reported_at  timestamptz NOT NULL DEFAULT 'epoch',
    report       jsonb,
    sends_mails  boolean NOT NULL DEFAULT false,
    reported     jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX alert_rounds_attempted_at_idx ON alert_rounds (attempted_at);
COMMENT ON COLUMN alert_rounds.attempted_at IS 'the last evaluation, also one that failed; evaluated_at has the last one that did not';
COMMENT ON COLUMN alert_rounds.nights_at IS 'when the coverage of the last night was evaluated';
COMMENT ON COLUMN alert_rounds.reported_at IS 'the time for which the newest morning report was due';

-- alerts holds what was wrong, from when to when. subject identifies it among those of its rule: the id of a device, or
-- the hardware id of a unit whose uploads are rejected. One alert of a rule and a subject is open at a time.
CREATE TABLE alerts (
    id        uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    team_id   uuid NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    rule      text NOT NULL CHECK (rule IN ('silent', 'bad', 'coverage', 'rejects')),
    subject   text NOT NULL,
    device_id uuid REFERENCES devices (id) ON DELETE CASCADE,
    detail    text NOT NULL,
    since     timestamptz NOT NULL,
    noted_at  timestamptz NOT NULL,
    ended_at  timestamptz,
    outcome   text CHECK (outcome IN ('over', 'unknown', 'retracted', 'off')),
    CONSTRAINT alerts_ended CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX alerts_open_key ON alerts (team_id, rule, subject) WHERE ended_at IS NULL;
CREATE INDEX alerts_ended_at_idx ON alerts (team_id, ended_at);
CREATE INDEX alerts_device_id_idx ON alerts (device_id);
COMMENT ON COLUMN alerts.detail IS 'of bad air: the metric, the side and the limit, such as co2_ppm above 1400; otherwise words';
COMMENT ON COLUMN alerts.since IS 'when the cause began: the last upload, the first bad reading, or the night';
COMMENT ON COLUMN alerts.outcome IS 'over; unknown: no fresh readings; retracted: late data changed what was known; off: the rule was switched off';

-- mail_choices has which mails a member wants. Without a row, none: nobody gets a mail without a choice. stop is in the
-- link with which a mail is stopped without signing in.
CREATE TABLE mail_choices (
    user_id  uuid NOT NULL,
    team_id  uuid NOT NULL,
    alerts   boolean NOT NULL,
    morning  boolean NOT NULL,
    weekly   boolean NOT NULL,
    stop     uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    told     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (user_id, team_id),
    FOREIGN KEY (user_id, team_id) REFERENCES memberships ON DELETE CASCADE
);
CREATE INDEX mail_choices_team_id_idx ON mail_choices (team_id);
COMMENT ON COLUMN mail_choices.told IS 'by rule, the time of the last mail about alerts, which reported everything until then';

-- mails is the outbox. A process that sends takes a mail by moving try_at forward, so that another one does not send it at
-- the same time. The texts are deleted once a mail was sent or has failed permanently.
CREATE TABLE mails (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    team_id    uuid NOT NULL,
    user_id    uuid NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('alerts', 'morning', 'weekly')),
    subject    text,
    plain      text,
    html       text,
    created_at timestamptz NOT NULL DEFAULT now(),
    try_at     timestamptz NOT NULL DEFAULT now(),
    tries      integer NOT NULL DEFAULT 0,
    done_at    timestamptz,
    error      text,
    FOREIGN KEY (user_id, team_id) REFERENCES mail_choices ON DELETE CASCADE
);
CREATE INDEX mails_try_at_idx ON mails (try_at) WHERE done_at IS NULL;
CREATE INDEX mails_team_id_idx ON mails (team_id, created_at);
CREATE INDEX mails_user_id_idx ON mails (user_id, team_id);
COMMENT ON COLUMN mails.error IS 'why it was not sent yet, or never; null once it was sent';
