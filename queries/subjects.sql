-- A subject is a person whom the assignments of a team name, by label or by external_ref. The queries of this file serve
-- `person export` and `person erase`.

-- SubjectAssignmentList lists the assignments with a label or an external_ref, the oldest first, with their devices.
-- name: SubjectAssignmentList :many
SELECT sqlc.embed(a), d.hardware_id, d.display_name
FROM assignments a JOIN devices d ON d.id = a.device_id
WHERE d.team_id = @team_id AND (a.label = sqlc.narg(label) OR a.external_ref = sqlc.narg(external_ref))
ORDER BY a.started_at, a.id;

-- SubjectPastAssignmentList lists the ids of the assignments that the audit log knows by a label or an external_ref,
-- those that were deleted or changed since included.
-- name: SubjectPastAssignmentList :many
SELECT DISTINCT l.object_id FROM audit_log l
WHERE l.team_id = @team_id AND l.object_kind = 'assignment'
  AND (sqlc.narg(label)::text IN (l.object_name, l.before ->> 'label', l.after ->> 'label')
       OR sqlc.narg(external_ref)::text IN (l.before ->> 'external_ref', l.after ->> 'external_ref'))
ORDER BY l.object_id;

-- SubjectNoteList lists the notes of these assignments, the oldest first.
-- name: SubjectNoteList :many
SELECT n.* FROM notes n JOIN assignments a ON a.id = n.assignment_id
WHERE n.team_id = @team_id AND (a.label = sqlc.narg(label) OR a.external_ref = sqlc.narg(external_ref))
ORDER BY n.at, n.id;

-- SubjectAuditList lists the changes of some assignments and of their notes, the oldest first.
-- name: SubjectAuditList :many
SELECT * FROM audit_log l
WHERE l.team_id = @team_id
  AND (l.object_kind = 'assignment' AND l.object_id = ANY(@assignment_ids::text[])
       OR l.object_kind = 'note' AND coalesce(l.after, l.before) ->> 'assignment_id' = ANY(@assignment_ids))
ORDER BY l.at, l.id;

-- SubjectAssignmentErase replaces the label of assignments and clears their external_ref.
-- name: SubjectAssignmentErase :execrows
UPDATE assignments SET label = @name::text, external_ref = NULL
WHERE device_id IN (SELECT d.id FROM devices d WHERE d.team_id = @team_id)
  AND (label = sqlc.narg(label) OR external_ref = sqlc.narg(external_ref));

-- SubjectNoteErase deletes the notes of assignments.
-- name: SubjectNoteErase :execrows
DELETE FROM notes
WHERE team_id = @team_id
  AND assignment_id IN (
      SELECT a.id FROM assignments a WHERE a.label = sqlc.narg(label) OR a.external_ref = sqlc.narg(external_ref));

-- SubjectAuditErase replaces the label in the changes of some assignments and of their notes, and removes the external_ref,
-- the text of the notes and the reason.
-- name: SubjectAuditErase :execrows
UPDATE audit_log SET object_name = @name::text, reason = NULL,
    before = (before - 'external_ref' - 'text') || CASE WHEN before ? 'label' THEN jsonb_build_object('label', @name::text) ELSE '{}' END,
    after = (after - 'external_ref' - 'text') || CASE WHEN after ? 'label' THEN jsonb_build_object('label', @name::text) ELSE '{}' END
WHERE team_id = @team_id
  AND (object_kind = 'assignment' AND object_id = ANY(@assignment_ids::text[])
       OR object_kind = 'note' AND coalesce(after, before) ->> 'assignment_id' = ANY(@assignment_ids));

-- SubjectResponseList lists the stored responses that contain one of some ids, or match a regular expression.
-- name: SubjectResponseList :many
SELECT i.key_id, i.method, i.path, i.idempotency_key, i.response FROM idempotency_keys i
WHERE i.key_id IN (SELECT k.key_id FROM api_keys k WHERE k.team_id = @team_id)
  AND (encode(i.response, 'escape') ~ sqlc.narg(pattern)::text
       OR EXISTS (SELECT FROM unnest(@ids::text[]) t(x) WHERE position(convert_to(t.x, 'UTF8') IN i.response) > 0))
ORDER BY i.key_id, i.method, i.path, i.idempotency_key
FOR UPDATE;

-- SubjectSessionErase removes notices that match a regular expression and that no page has shown yet.
-- name: SubjectSessionErase :execrows
UPDATE sessions SET data = convert_to((convert_from(data, 'UTF8')::jsonb #- '{values,message}')::text, 'UTF8')
WHERE encode(data, 'escape') ~ @pattern::text;

-- SubjectAuditMentionList lists all entries that match a regular expression.
-- name: SubjectAuditMentionList :many
SELECT at, id, object_name, device_name, before, after, reason FROM audit_log
WHERE team_id = @team_id
  AND (object_name ~ @pattern::text OR device_name ~ @pattern OR before::text ~ @pattern OR after::text ~ @pattern
       OR reason ~ @pattern)
ORDER BY at, id;

-- name: SubjectAuditMentionErase :exec
UPDATE audit_log SET object_name = @object_name, device_name = @device_name, before = @before, after = @after,
    reason = @reason
WHERE team_id = @team_id AND at = @at AND id = @id;

-- SubjectSourceErase removes the newest messages of sources that match a regular expression.
-- name: SubjectSourceErase :execrows
UPDATE source_state st SET message = NULL FROM sources s
WHERE s.id = st.source_id AND s.team_id = @team_id AND encode(st.message, 'escape') ~ @pattern::text;

-- SubjectRejectList lists the ids of the rejects that match a regular expression.
-- name: SubjectRejectList :many
SELECT r.id FROM rejected_uploads r
WHERE r.team_id = @team_id::uuid
  AND (r.detail ~ @pattern::text OR encode(r.payload, 'escape') ~ @pattern)
ORDER BY r.received_at, r.id;

-- SubjectRejectErase replaces what a reject contains, and counts its size again.
-- name: SubjectRejectErase :exec
WITH present AS (
    SELECT reject_bytes(r.payload, r.detail) AS bytes FROM rejected_uploads r
    WHERE r.id = @id AND r.team_id = @team_id::uuid FOR UPDATE
), changed AS (
    UPDATE rejected_uploads r SET payload = @payload, detail = @detail WHERE r.id = @id AND r.team_id = @team_id::uuid
    RETURNING reject_bytes(r.payload, r.detail) AS bytes
)
UPDATE reject_usage u SET bytes = u.bytes + changed.bytes - present.bytes FROM present, changed
WHERE u.team_id = @team_id::uuid;

-- SubjectMentionList lists the places of a team that match a regular expression, at most @most of them: all columns in
-- which people or devices can write a text. It leaves out some assignments and their changes. The content of bytes is
-- empty.
-- name: SubjectMentionList :many
SELECT m.place::text AS place, m.id::text AS id, m.field::text AS field,
    (CASE WHEN m.field IN ('payload', 'response', 'message') THEN '' ELSE m.content END)::text AS content
FROM (
    SELECT 'teams', t.id::text, 'name', t.name FROM teams t WHERE t.id = @team_id
    UNION ALL SELECT 'devices', d.id::text, 'hardware_id', d.hardware_id FROM devices d WHERE d.team_id = @team_id
    UNION ALL SELECT 'devices', d.id::text, 'display_name', d.display_name FROM devices d WHERE d.team_id = @team_id
    UNION ALL SELECT 'devices', d.id::text, 'metadata', d.metadata::text FROM devices d WHERE d.team_id = @team_id
    UNION ALL SELECT 'device_hardware', h.device_id::text, 'hardware_id', h.hardware_id
        FROM device_hardware h JOIN devices d ON d.id = h.device_id WHERE d.team_id = @team_id
    UNION ALL SELECT 'device_state', s.device_id::text, 'firmware_version', s.firmware_version
        FROM device_state s JOIN devices d ON d.id = s.device_id WHERE d.team_id = @team_id
    UNION ALL SELECT 'assignments', a.id::text, 'label', a.label
        FROM assignments a JOIN devices d ON d.id = a.device_id
        WHERE d.team_id = @team_id AND NOT a.id::text = ANY(@assignment_ids::text[])
    UNION ALL SELECT 'assignments', a.id::text, 'external_ref', a.external_ref
        FROM assignments a JOIN devices d ON d.id = a.device_id
        WHERE d.team_id = @team_id AND NOT a.id::text = ANY(@assignment_ids::text[])
    UNION ALL SELECT 'notes', n.id::text, 'text', n.text FROM notes n
        WHERE n.team_id = @team_id AND NOT coalesce(n.assignment_id::text = ANY(@assignment_ids::text[]), false)
    UNION ALL SELECT 'api_keys', k.key_id, 'label', k.label FROM api_keys k WHERE k.team_id = @team_id
    UNION ALL SELECT 'ingest_keys', k.key_id, 'label', k.label FROM ingest_keys k WHERE k.team_id = @team_id
    UNION ALL SELECT 'api_key_uses', u.key_id, 'client', u.client
        FROM api_key_uses u JOIN api_keys k ON k.key_id = u.key_id WHERE k.team_id = @team_id
    UNION ALL SELECT 'ingest_key_uses', u.key_id, 'client', u.client
        FROM ingest_key_uses u JOIN ingest_keys k ON k.key_id = u.key_id WHERE k.team_id = @team_id
    UNION ALL SELECT 'users', u.id::text, 'display_name', u.display_name
        FROM users u JOIN memberships m ON m.user_id = u.id WHERE m.team_id = @team_id
    UNION ALL SELECT 'users', u.id::text, 'email', u.email
        FROM users u JOIN memberships m ON m.user_id = u.id WHERE m.team_id = @team_id
    UNION ALL SELECT 'audit_log', l.id::text, 'actor', l.actor FROM audit_log l WHERE l.team_id = @team_id
    UNION ALL SELECT 'audit_log', l.id::text, 'object_name', l.object_name FROM audit_log l
        WHERE l.team_id = @team_id AND NOT (l.object_kind = 'assignment' AND l.object_id = ANY(@assignment_ids::text[]))
    UNION ALL SELECT 'audit_log', l.id::text, 'device_name', l.device_name FROM audit_log l WHERE l.team_id = @team_id
    UNION ALL SELECT 'audit_log', l.id::text, 'before', l.before::text FROM audit_log l
        WHERE l.team_id = @team_id AND NOT (l.object_kind = 'assignment' AND l.object_id = ANY(@assignment_ids::text[]))
    UNION ALL SELECT 'audit_log', l.id::text, 'after', l.after::text FROM audit_log l
        WHERE l.team_id = @team_id AND NOT (l.object_kind = 'assignment' AND l.object_id = ANY(@assignment_ids::text[]))
    UNION ALL SELECT 'audit_log', l.id::text, 'reason', l.reason FROM audit_log l
        WHERE l.team_id = @team_id AND NOT (l.object_kind = 'assignment' AND l.object_id = ANY(@assignment_ids::text[]))
    UNION ALL SELECT 'alerts', a.id::text, 'subject', a.subject FROM alerts a WHERE a.team_id = @team_id
    UNION ALL SELECT 'alert_rounds', r.team_id::text, 'report', r.report::text FROM alert_rounds r WHERE r.team_id = @team_id
    UNION ALL SELECT 'alert_rounds', r.team_id::text, 'reported', r.reported::text FROM alert_rounds r
        WHERE r.team_id = @team_id
    UNION ALL SELECT 'mails', m.id::text, 'subject', m.subject FROM mails m WHERE m.team_id = @team_id
    UNION ALL SELECT 'mails', m.id::text, 'plain', m.plain FROM mails m WHERE m.team_id = @team_id
    UNION ALL SELECT 'mails', m.id::text, 'html', m.html FROM mails m WHERE m.team_id = @team_id
    UNION ALL SELECT 'mails', m.id::text, 'error', m.error FROM mails m WHERE m.team_id = @team_id
    UNION ALL SELECT 'rejected_uploads', r.id::text, 'detail', r.detail FROM rejected_uploads r WHERE r.team_id = @team_id
    UNION ALL SELECT 'rejected_uploads', r.id::text, 'hardware_id', r.hardware_id FROM rejected_uploads r
        WHERE r.team_id = @team_id
    UNION ALL SELECT 'rejected_uploads', r.id::text, 'unit', r.unit FROM rejected_uploads r WHERE r.team_id = @team_id
    UNION ALL SELECT 'sources', s.id::text, 'name', s.name FROM sources s WHERE s.team_id = @team_id
    UNION ALL SELECT 'sources', s.id::text, 'mapping', s.mapping FROM sources s WHERE s.team_id = @team_id
    UNION ALL SELECT 'source_state', s.id::text, 'message', encode(st.message, 'escape')
        FROM source_state st JOIN sources s ON s.id = st.source_id WHERE s.team_id = @team_id
    UNION ALL SELECT 'unit_aliases', a.hardware_id, 'alias', a.alias FROM unit_aliases a WHERE a.team_id = @team_id
    UNION ALL SELECT 'rejected_uploads', r.id::text, 'payload', encode(r.payload, 'escape') FROM rejected_uploads r
        WHERE r.team_id = @team_id
    UNION ALL SELECT 'idempotency_keys', i.path, 'idempotency_key', i.idempotency_key
        FROM idempotency_keys i JOIN api_keys k ON k.key_id = i.key_id WHERE k.team_id = @team_id
    UNION ALL SELECT 'idempotency_keys', i.path, 'response', encode(i.response, 'escape')
        FROM idempotency_keys i JOIN api_keys k ON k.key_id = i.key_id WHERE k.team_id = @team_id
) m (place, id, field, content)
WHERE m.content ~ @pattern::text
ORDER BY 1, 2, 3
LIMIT @most::bigint;

-- SubjectErasureInsert records an erasure, without the name of the person.
-- name: SubjectErasureInsert :exec
INSERT INTO audit_log (actor_kind, actor, user_id, team_id, action, object_kind, object_id, object_name, after)
SELECT coalesce(a.actor ->> 'kind', 'sql'), coalesce(a.actor ->> 'name', session_user), (a.actor ->> 'user_id')::uuid,
    @team_id::uuid, 'delete', 'person', @erasure_id::text, @name, @after::jsonb
FROM (SELECT nullif(current_setting('roomsensor.actor', true), '')::jsonb) a(actor);
