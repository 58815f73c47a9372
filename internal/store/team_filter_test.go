package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These are the reasons why a query may have no condition on the team. Queries for clients may have the first six only.
const (
	byKey  = "the API key of the request selects its rows, and a key belongs to one team"
	noTeam = "what it reads or sets belongs to no team"
	byUser = "the session or the link of a request selects its rows, and they belong to one person"
	byUnit = "a hardware unit is in one device of all teams; pages do not name the device of another team"

	insertsTeam = "it inserts the row that names the team, or that names a row of it"

	operator    = "operator's commands work on all teams"
	worker      = "the worker stores uploads of all teams"
	receiver    = "the receiver knows the ingest keys of all teams"
	notifier    = "the process that notifies works on all teams"
	maintenance = "it maintains the tables of all teams"
)

// withoutTeam contains the queries without a condition on the team, with the reason.
var withoutTeam = map[string]string{
	"APIKeyGet": byKey, "APIKeyUseUpsert": byKey, "IngestKeyUseUpsert": byKey, "RateWindowHit": byKey, "IdempotencyKeyClaim": byKey, "IdempotencyKeyGet": byKey, "IdempotencyKeyStore": byKey, "IdempotencyBytesAdd": byKey,
	"PositionGet": noTeam, "StandbyGet": noTeam, "StandbyGetSettings": operator, "FeedReserve": noTeam, "FeedWatermark": noTeam, "FeedChangedAll": noTeam, "FeedStateGet": noTeam, "FeedLateList": noTeam,
	"FeedRangeList": noTeam, "FeedDayList": noTeam, "FeedBegin": worker, "FeedBatchInsert": worker,
	"FeedStateUpdate": maintenance, "FeedBatchPurge": maintenance, "ForeignWriteSettle": maintenance, "FeedPurge": maintenance,
	"DatabaseGetUsage": noTeam, "DeviceCountByStatus": maintenance, "IngestKeyCountExpiring": maintenance, "APIKeyCountExpiring": maintenance,
	"SettingsSet": noTeam, "DatabaseGet": noTeam, "ChunkCount": noTeam, "SecretEnsure": noTeam, "SecretGet": noTeam, "ReceiverSecretEnsure": noTeam, "ReceiverSecretGet": noTeam, "HourlyListValid": noTeam,

	"UserGet": byUser, "AuditCountRecent": byUser, "UserGetCredentials": byUser, "MembershipListByUser": byUser, "SessionGet": byUser, "SessionPut": byUser, "SessionEnd": byUser,
	"UserGetByEmail": byUser, "UserSetPassword": byUser, "UserSetFirstPassword": byUser, "UserSetName": byUser, "UserSetFormat": byUser, "UserSignOut": byUser, "UserInsert": noTeam,
	"SignInLinkGet": byUser, "SignInLinkUse": byUser, "SignInLinkDelete": byUser, "SignInLinkInsert": insertsTeam, "MembershipInsert": insertsTeam,
	"SignInAttemptCount": noTeam, "SignInAttemptDelete": noTeam, "SignInAddressExists": byUser, "SignInAddressPut": byUser, "SignInAddressTrim": byUser,
	"UserDisable": operator, "UserEnable": operator, "UserList": operator,
	"SessionPurge": maintenance, "SignInAttemptPurge": maintenance, "SignInAddressPurge": maintenance, "SignInLinkPurge": maintenance, "SharedLinkPurge": maintenance, "SharedLinkInsert": insertsTeam, "SharedLinkGet": byUser,

	"APIKeyInsert": insertsTeam, "IngestKeyInsert": insertsTeam, "SourceInsert": insertsTeam, "AliasInsert": insertsTeam, "TeamInsert": insertsTeam, "DeviceInsert": insertsTeam,
	"UserDelete": operator, "UserAuditErase": operator, "SubjectMentionList": operator, "SubjectSessionErase": operator,
	"SubjectErasureInsert": operator, "SubjectResponseList": operator,
	"TeamGetRevoked": operator, "DeviceListByName": operator, "DeviceGetByUnit": operator,
	"DeviceContentsGet": operator, "DeviceLockForDelete": operator, "DeviceDelete": operator, "HardwareDeleteByDevice": operator,
	"AssignmentDeleteByDevice": operator, "ReadingGetFirst": operator, "ReadingDeleteByDevice": operator, "ReadingSetArrival": operator,
	"FeedBeginDeletion": operator, "ReadingDeletionInsert": operator, "ReadingDeletionCount": operator,
	"ReadingCountRange": operator, "ReadingDeleteRange": operator, "RetentionBegin": maintenance, "ExpiredDeviceList": maintenance, "ReadingExpire": maintenance,
	"APIKeyDelete":         operator,
	"IdempotencyKeyDelete": operator,
	"TableSizeList":        noTeam,
	"OwnerGet":             noTeam, "ArchiverGet": noTeam, "RestoredGet": operator, "SessionsSeen": noTeam, "TableLock": noTeam, "LockHolderList": noTeam, "RowsTry": noTeam,
	"ServerGet": operator, "BlockerList": operator, "ChunkGetNewest": operator, "JobListFailed": operator, "RejectDeleteByTeam": operator, "RejectCountByReason": operator,
	"TeamList": operator, "DeviceGetByID": operator,
	"HardwareExists": byUnit, "HardwareGetSince": byUnit, "AssignmentGetTeam": operator, "AuditList": operator,
	"RejectList": operator, "RejectGet": operator, "RejectGetByMessage": operator, "RejectMarkReplayed": operator,
	"HardwareList": worker, "DeviceHeartbeatUpdate": worker, "ReadingUpsert": worker, "RejectInsert": worker,
	"ReadingIsNew": worker, "ReadingCopy": worker, "ReadingIncomingCreate": worker, "ReadingIncomingCopy": worker, "ReadingUpsertIncoming": worker,
	"IngestKeyListAfter": receiver, "IngestKeyGet": receiver, "IngestKeyPosition": receiver, "IngestKeyListChanged": receiver,
	"AlertRoundInsert": notifier, "AlertRoundTake": notifier, "AlertRoundGetNewest": operator, "AlertPurge": maintenance, "AlertInsert": insertsTeam, "MailChoicePut": insertsTeam, "MailChoiceGetByStop": byUser, "MailChoiceStop": byUser,
	"MailInsert": insertsTeam, "MailTake": notifier, "MailEnd": notifier, "MailRetry": notifier, "MailCount": operator, "MailPurge": maintenance,
	"AuditExpire": maintenance, "AuditTrim": maintenance, "IdempotencyKeyPurge": maintenance, "IdempotencyBytesPurge": maintenance, "RateWindowPurge": maintenance, "LayoutGet": maintenance, "ChunkListUnordered": maintenance, "ChunkListRanges": noTeam, "ChunkOrder": maintenance, "ChunkPostpone": maintenance, "RejectTrimAge": maintenance,
	"WorkerSet": noTeam, "StatsSet": noTeam, "CurrentSourceGet": noTeam, "RejectTrimLock": maintenance, "OpenedChunkLock": worker, "DeviceSampledList": worker, "OpenedChunkInsert": worker, "RejectTrimTeam": maintenance, "RejectUsageList": maintenance, "StreamShareInsert": worker, "StreamShareList": worker, "StreamShareDelete": maintenance, "StreamGet": worker, "StreamInsert": worker, "StreamReplace": operator,
	"SourceListByID": byKey, "AliasUnitList": byKey, "SourceStateUpsert": worker, "SourceHourAdd": worker, "SourceHourPurge": worker, "AliasDeleteUnused": operator,
	"DeviceStateLock": worker, "SampleBucketList": worker, "SampleAdopt": worker, "SampleUpsert": worker, "ReadingUpsertMean": worker, "SampleDeleteByDevice": operator,
}

// TestTeamFilter checks that every query either has a condition on the team that applies to all of its rows, or is
// listed above; queries that the API uses may be listed for these reasons only. Tests of the API check the
// conditions themselves, with ids of other teams.
func TestTeamFilter(t *testing.T) {
	t.Parallel()
	queries, used := readQueries(t), namesUsedBy(t, interfaceMethods(t, slices.Concat(
		filesIn(t, "../dashboard/*"), filesIn(t, "../export"), []string{"../api/backend.go", "../api/feed/feed.go", "../roomsensor/device.go"})...))
	delete(used, "RejectGet") // TeamReject mentions Reject as a type only.
	for name, sql := range queries {
		reason, listed := withoutTeam[name]
		require.NotEqual(t, listed, bindsTeam(sql), "%s: add a condition on the team, or a reason here", name)
		if used[name] && listed {
			require.Contains(t, []string{byKey, noTeam, byUnit, byUser, insertsTeam}, reason, "%s is used by the API or the dashboard", name)
		}
	}
	for name := range withoutTeam {
		require.Contains(t, queries, name)
	}
	for _, name := range []string{"DeviceList", "ReadingList", "ReadingExport", "ReadingExportIngested", "DeviceTaggedList", "ReadingCountLines", "ReadingFit", "ReadingGetExtent", "HourlySum", "DeviceUpdate", "IdempotencyKeyGet"} {
		require.True(t, used[name], name)
	}
	require.False(t, used["DeviceGetByID"])

	// What a receiver reads for its clients belongs to their team, but for installations, of which upload.Resolve hides
	// those of other teams.
	used = namesUsedBy(t, interfaceMethods(t, "../receiver/database.go", "../source/preview.go", "../source/search.go"))
	delete(used, "RejectGet") // TeamRejects mentions Reject as a type only.
	for name := range queries {
		if used[name] && name != "HardwareList" {
			require.Contains(t, []string{"", noTeam, byKey}, withoutTeam[name], "%s is used by the receiver", name)
		}
	}
	require.True(t, used["RejectListByTeam"])
}

func TestBindsTeam(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"SELECT 1 FROM devices WHERE team_id = @team_id":                                                        true,
		"SELECT 1 FROM devices d WHERE d.id = @id AND d.team_id = @team_id ORDER BY 1":                          true,
		"SELECT 1 FROM teams WHERE id = @team_id":                                                               true,
		"UPDATE teams SET name = @name WHERE id = @team_id":                                                     true,
		"UPDATE teams SET name = @name WHERE id = @id":                                                          false,
		"UPDATE devices SET team_id = 1 WHERE id = @team_id":                                                    false,
		"SELECT 1 FROM devices d WHERE d.team_id = @team_id AND (d.id = @a OR d.id = @b)":                       true,
		"SELECT 1 FROM readings r WHERE r.device_id IN (SELECT id FROM devices WHERE team_id = @team_id)":       true,
		"SELECT 1 FROM readings WHERE device_id = ANY(ARRAY(SELECT id FROM devices WHERE team_id = @team_id))":  true,
		"SELECT 1 FROM readings WHERE device_id = ANY(ARRAY(SELECT id FROM devices WHERE id = @team_id))":       false,
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

// readQueries returns the text of each query in queries/, without comments.
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
	// disjunct marks conditions that apply to some rows only.
	disjunct = regexp.MustCompile(`\b(OR|UNION)\b`)
	ofTeam   = regexp.MustCompile(`(?:FROM teams|^UPDATE teams SET .*) WHERE (?:teams\.)?id = @team_id|\b(?:WHERE|AND) (?:\w+\.)?team_id = @team_id\b`)
	// ofItsDevice is a condition that the device of a row belongs to the team.
	ofItsDevice = regexp.MustCompile(`\b(?:(?:WHERE|AND) (?:(?:\w+\.)?device_id IN|EXISTS)|FROM) TEAM\b`)
	// fromChanged selects from the result of a CTE; both names must be the same.
	fromChanged = regexp.MustCompile(`^WITH (\w+) AS TEAM SELECT .* FROM (\w+)\b`)
	joinedOn    = regexp.MustCompile(`\bON\b.*?( WHERE\b|$)`)
)

// bindsTeam reports whether a statement has a condition on the team that applies to all of its rows. It replaces
// parentheses from the inside: a subquery with such a condition becomes the word TEAM.
func bindsTeam(sql string) bool {
	holds := func(level string) bool {
		level = joinedOn.ReplaceAllString(level, "$1")
		names := fromChanged.FindStringSubmatch(level)
		ofChanged := names != nil && names[1] == names[2]
		return !disjunct.MatchString(level) && (ofTeam.MatchString(level) || ofItsDevice.MatchString(level) || ofChanged)
	}
	sql = strings.ReplaceAll(sql, "ANY(@team_ids::uuid[])", "@team_id") // Requests of several teams are read together.
	for innermost.MatchString(sql) {
		sql = innermost.ReplaceAllStringFunc(sql, func(group string) string {
			if holds(strings.Trim(group, "()")) {
				return "TEAM"
			}
			return "_"
		})
		sql = strings.ReplaceAll(sql, "= ANY(ARRAYTEAM)", "IN TEAM") // An array of the ids that the subquery selects.
	}
	return holds(sql)
}

// namesUsedBy returns all names that are reachable from some methods: the identifiers in their bodies, and in the bodies
// of all functions with one of those names.
func namesUsedBy(t *testing.T, methods []string) map[string]bool {
	t.Helper()
	mentions := identifiersByFunction(t)
	used := map[string]bool{}
	next := slices.Clone(methods)
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if !used[name] {
			used[name] = true
			next = append(next, slices.Collect(maps.Keys(mentions[name]))...)
		}
	}
	return used
}

// ofModule reports whether a package that the store imports is of this module.
func ofModule(path string) bool {
	return path == "roomsensor/db" || strings.HasPrefix(path, "roomsensor/internal/")
}

// identifiersByFunction returns the identifiers in the body of each function of the packages of the store, and of the
// adapter of the API, without those of packages outside of this module.
func identifiersByFunction(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, name := range slices.Concat(filesIn(t, "."), filesIn(t, "*"), []string{"../service/api.go"}) {
		file := parse(t, name)
		others := map[string]bool{} // packages outside of this module
		for _, i := range file.Imports {
			if path := strings.Trim(i.Path.Value, `"`); !ofModule(path) {
				others[filepath.Base(path)] = true
			}
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name == "New" { // Constructors run no statement, and errors have a method of that name.
				continue
			}
			if all[f.Name.Name] == nil {
				all[f.Name.Name] = map[string]bool{}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					of, ok := n.X.(*ast.Ident)
					return !ok || !others[of.Name]
				case *ast.Ident:
					all[f.Name.Name][n.Name] = true
				}
				return true
			})
		}
	}
	return all
}

// filesIn returns the Go files of a directory, without tests.
func filesIn(t *testing.T, directory string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// interfaceMethods returns the methods of all interfaces in some files.
func interfaceMethods(t *testing.T, files ...string) (names []string) {
	t.Helper()
	for _, file := range files {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, method := range i.Methods.List {
					for _, name := range method.Names {
						names = append(names, name.Name)
					}
				}
			}
			return true
		})
	}
	require.NotEmpty(t, names)
	return names
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}
