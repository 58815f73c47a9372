-- NoteList lists the notes of a team in a window, the newest first, with their authors and the people whom they are about.
-- name: NoteList :many
SELECT n.id, n.device_id, n.assignment_id, n.at, n.text, a.type, a.label, a.external_ref, u.email, u.display_name
FROM notes n
LEFT JOIN assignments a ON a.id = n.assignment_id
LEFT JOIN users u ON u.id = n.author_id
WHERE n.team_id = @team_id AND n.at >= @window_from::timestamptz AND n.at < @window_to::timestamptz
ORDER BY n.at DESC, n.id;

-- name: NoteCount :one
SELECT count(*) FROM notes WHERE team_id = @team_id;

-- NoteInsert inserts a note about a device of the team, unless it is there already.
-- name: NoteInsert :exec
INSERT INTO notes (team_id, device_id, assignment_id, at, text, author_id)
SELECT d.team_id, d.id, sqlc.narg(assignment_id)::uuid, @at::timestamptz, @text::text, sqlc.narg(author_id)::uuid FROM devices d
WHERE d.team_id = @team_id AND d.id = @device_id
ON CONFLICT ON CONSTRAINT notes_once DO NOTHING;

-- name: NoteDelete :execrows
DELETE FROM notes WHERE team_id = @team_id AND id = @note_id;
