package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Why a query need not be bound to a team. The first two may serve a client.
const (
	byKey    = "the key of the request names its rows, and a key belongs to one team"
	ofNobody = "what it reads or sets belongs to no team"

	operator   = "an operator's command, for all teams"
	worker     = "a worker stores what devices of all teams send"
	receiver   = "the receiver knows the credentials of all teams"
	upkeep     = "it looks after the tables of all teams"
	makesOwner = "it makes the row that says whose it is"
)

// teamless are the queries without a condition on the team, and why.
var teamless = map[string]string{
	"APIKeyGet": byKey, "RateWindowHits": byKey, "IdempotencyClaim": byKey, "IdempotencyGet": byKey, "IdempotencyKeep": byKey,
	"SettingLocal": ofNobody, "DatabaseInfo": ofNobody, "SecretEnsure": ofNobody, "SecretGet": ofNobody,

	"APIKeyInsert": makesOwner, "IngestKeyInsert": makesOwner, "TeamInsert": makesOwner, "DeviceInsert": makesOwner,
	"APIKeyRevoke": operator, "IngestKeyRevoke": operator, "TeamList": operator, "DeviceGetAny": operator, "DeviceLockAny": operator,
	"DeviceSetHardware": operator, "DeviceHardwareLast": operator, "HardwareInsert": operator, "HardwareKnown": operator,
	"HardwareSince": operator, "HardwareRemove": operator, "AssignmentInsert": operator, "AssignmentLockAny": operator,
	"AssignmentOverlap": operator, "AssignmentEnd": operator, "AssignmentListAny": operator, "RejectList": operator,
	"RejectGet": operator, "RejectMarkReplayed": operator,
	"HardwareList": worker, "DeviceLockSeen": worker, "DeviceSeen": worker, "ReadingUpsert": worker, "RejectInsert": worker,
	"ReadingAny": worker, "ReadingCopy": worker, "ReadingIncomingCreate": worker, "ReadingIncomingCopy": worker,
	"IngestKeyListAll": receiver,
	"IdempotencyPurge": upkeep, "ReadingsLayout": upkeep, "ChunkToOrderList": upkeep, "ChunkOrder": upkeep, "RejectTrimAge": upkeep,
	"RejectTrimSize": upkeep, "RejectTotals": upkeep,
}

// A query is bound to the team by a condition that holds for all of its rows, or is on the list above; those that the
// API can reach are on it for few reasons. What the conditions make of ids of others is shown by the tests of the API.
func TestQueriesThatServeClientsNameTheTeam(t *testing.T) {
	t.Parallel()
	queries, served := readQueries(t), servedNames(t)
	for name, sql := range queries {
		reason, listed := teamless[name]
		require.NotEqual(t, listed, bindsTeam(sql), "%s: a query has a condition on the team, or a reason here", name)
		if served[name] && listed {
			require.Contains(t, []string{byKey, ofNobody}, reason, "%s serves clients", name)
		}
	}
	for name := range teamless {
		require.Contains(t, queries, name)
	}
	for _, name := range []string{"DeviceList", "ReadingPage", "ReadingExport", "ReadingCountLines", "ReadingExtent", "HourlySum", "DeviceUpdate", "IdempotencyGet"} {
		require.True(t, served[name], name)
	}
	require.False(t, served["DeviceGetAny"])
}

func TestBindsTeam(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"SELECT 1 FROM devices WHERE team_id = @team_id":                                                        true,
		"SELECT 1 FROM devices d WHERE d.id = @id AND d.team_id = @team_id ORDER BY 1":                          true,
		"SELECT 1 FROM teams WHERE id = @team_id":                                                               true,
		"SELECT 1 FROM devices d WHERE d.team_id = @team_id AND (d.id = @a OR d.id = @b)":                       true,
		"SELECT 1 FROM readings r WHERE r.device_id IN (SELECT id FROM devices WHERE team_id = @team_id)":       true,
		"SELECT 1 FROM devices WHERE id = @id":                                                                  false,
		"SELECT @team_id FROM devices":                                                                          false,
		"SELECT 1 FROM devices WHERE id = @team_id":                                                             false,
		"SELECT 1 FROM devices WHERE id = @id OR team_id = @team_id":                                            false,
		"SELECT 1 FROM devices WHERE team_id = @team_id OR id = @id":                                            false,
		"SELECT 1 FROM devices WHERE NOT team_id = @team_id":                                                    false,
		"SELECT 1 FROM devices WHERE (@team_id IS NULL OR team_id = @team_id)":                                  false,
		"SELECT 1 FROM readings WHERE id = 1 OR id IN (SELECT id FROM devices WHERE team_id = @team_id)":        false,
		"SELECT 1 FROM readings WHERE id NOT IN (SELECT id FROM devices WHERE team_id = @team_id)":              false,
		"SELECT (SELECT 1 FROM devices WHERE team_id = @team_id) FROM readings WHERE id = @id":                  false,
		"SELECT 1 FROM a LEFT JOIN devices d ON d.id = a.id AND d.team_id = @team_id":                           false,
		"WITH d AS (SELECT id FROM devices WHERE team_id = @team_id) SELECT 1 FROM readings WHERE id = @device": false,
		"WITH d AS (UPDATE devices SET x = 1 WHERE team_id = @team_id RETURNING id) SELECT 1 FROM d":            true,
		"WITH d AS (UPDATE devices SET x = 1 WHERE id = @team_id RETURNING id) SELECT 1 FROM d":                 false,
	} {
		require.Equal(t, want, bindsTeam(sql), sql)
	}
}

var (
	nameOfQuery = regexp.MustCompile(`(?m)^-- name: (\w+) :\w+$`)
	commentLine = regexp.MustCompile(`(?m)^--.*$`)
)

// readQueries are the texts in queries/, without comments.
func readQueries(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../queries/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		at := append(nameOfQuery.FindAllSubmatchIndex(text, -1), []int{len(text)})
		for i, m := range at[:len(at)-1] {
			sql := commentLine.ReplaceAllString(string(text[m[1]:at[i+1][0]]), "")
			all[string(text[m[2]:m[3]])] = strings.Join(strings.Fields(sql), " ")
		}
	}
	return all
}

var (
	innermost = regexp.MustCompile(`\([^()]*\)`)
	// disjunct is what makes a condition hold for some rows only.
	disjunct = regexp.MustCompile(`\b(OR|UNION)\b`)
	ofTeam   = regexp.MustCompile(`FROM teams WHERE id = @team_id|\b(?:WHERE|AND) (?:\w+\.)?team_id = @team_id\b`)
	// ofItsDevice is a row of which the device was found to be one of the team.
	ofItsDevice = regexp.MustCompile(`\b(?:(?:WHERE|AND) (?:(?:\w+\.)?device_id IN|EXISTS)|FROM) TEAM\b`)
	// fromChanged reads what a statement before it gave; the two names have to be one.
	fromChanged = regexp.MustCompile(`^WITH (\w+) AS TEAM SELECT .* FROM (\w+)\b`)
	joinedOn    = regexp.MustCompile(`\bON\b.*?( WHERE\b|$)`)
)

// bindsTeam reports whether a statement is held to the team in all of its rows. It takes what is between brackets out, from the inside: a subquery that is held to the team becomes the word TEAM.
func bindsTeam(sql string) bool {
	holds := func(level string) bool {
		level = joinedOn.ReplaceAllString(level, "$1")
		names := fromChanged.FindStringSubmatch(level)
		ofChanged := names != nil && names[1] == names[2]
		return !disjunct.MatchString(level) && (ofTeam.MatchString(level) || ofItsDevice.MatchString(level) || ofChanged)
	}
	for innermost.MatchString(sql) {
		sql = innermost.ReplaceAllStringFunc(sql, func(group string) string {
			if holds(strings.Trim(group, "()")) {
				return "TEAM"
			}
			return "_"
		})
	}
	return holds(sql)
}
