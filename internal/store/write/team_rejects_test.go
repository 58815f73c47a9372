package write_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/storetest"
)

// insertRejects inserts rejects of some teams in turn, one per second, 10 of them with the same time.
func (f *fixture) insertRejects(t *testing.T, n int, teams ...any) {
	t.Helper()
	for _, team := range teams {
		f.Exec(t, `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, hardware_id, unit, payload)
			SELECT '2026-01-01Z'::timestamptz + greatest(i, 10) * INTERVAL '1 second', (SELECT count(*) FROM rejected_uploads) + i,
				CASE i % 3 WHEN 0 THEN 'no_metric' ELSE 'unknown_unit' END, 'detail', $2, 'dev:' || i % 2, 'dev:' || i % 2, ''
			FROM generate_series(1, $1) i`, n, team)
	}
}

// teamRejects reads all pages of a list.
func (f *fixture) teamRejects(t *testing.T, team uuid.UUID, q roomsensor.TeamRejectQuery) (all []roomsensor.Reject) {
	t.Helper()
	for {
		page, err := f.TeamRejects(t.Context(), team, q)
		require.NoError(t, err)
		all = append(all, page...)
		if len(page) < q.Limit {
			return all
		}
		last := page[len(page)-1]
		q.After = &roomsensor.RejectPosition{ReceivedAt: last.Arrival.At, ID: last.ID}
	}
}

func TestTeamRejects(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := uuid.New()
	f.insertRejects(t, 30, f.TeamID, other, nil)
	all := f.teamRejects(t, f.TeamID, roomsensor.TeamRejectQuery{Limit: 100})
	require.Len(t, all, 30)
	require.True(t, slices.IsSortedFunc(all, func(a, b roomsensor.Reject) int {
		if c := b.Arrival.At.Compare(a.Arrival.At); c != 0 {
			return c
		}
		return slices.Compare(b.ID[:], a.ID[:])
	}))
	newest := all[0]
	require.Equal(t, "2026-01-01T00:00:30Z", roomsensor.FormatTime(newest.Arrival.At))
	require.Equal(t, roomsensor.Reject{
		ID: newest.ID, Arrival: roomsensor.Arrival{At: newest.Arrival.At, Team: &f.TeamID}, HardwareID: new("dev:0"),
		Unit: new("dev:0"), Reason: roomsensor.ReasonNoMetric, Detail: "detail",
	}, newest)
	for _, size := range []int{1, 4, 7} {
		require.Equal(t, all, f.teamRejects(t, f.TeamID, roomsensor.TeamRejectQuery{Limit: size}), size)
	}

	filtered := f.teamRejects(t, f.TeamID, roomsensor.TeamRejectQuery{
		Limit: 2, Reason: new(roomsensor.ReasonNoMetric), HardwareID: new("dev:1"), Since: new(at("2026-01-01T00:00:15Z")),
	})
	require.Len(t, filtered, 3)
	for i, second := range []int{27, 21, 15} {
		require.Equal(t, at("2026-01-01T00:00:00Z").Add(time.Duration(second)*time.Second), filtered[i].Arrival.At)
	}
	require.Empty(t, f.teamRejects(t, uuid.New(), roomsensor.TeamRejectQuery{Limit: 10}))
	require.Empty(t, f.teamRejects(t, uuid.Nil, roomsensor.TeamRejectQuery{Limit: 10}), "rejects without a team belong to nobody")
}

// TestRejectListByTeamPlan checks that a page reads the rejects of its team only, in order, and checks the filters in
// the index, whatever the statistics say.
func TestRejectListByTeamPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	largest, unknown := uuid.New(), uuid.New() // unknown to the statistics
	f.insertRejects(t, 4_000, largest, nil)
	f.insertRejects(t, 100, f.TeamID)
	f.Exec(t, "ANALYZE rejected_uploads")
	f.insertRejects(t, 4_000, unknown)
	conn := f.PlanConn(t)
	for _, setting := range []string{"plan_cache_mode = force_custom_plan", "enable_sort = off"} { // As TeamRejects does.
		_, err := conn.Exec(t.Context(), "SET "+setting)
		require.NoError(t, err)
	}
	for _, team := range []uuid.UUID{f.TeamID, largest, unknown, uuid.New()} {
		conn.Check(t, func(int) error {
			_, err := db.New().RejectListByTeam(t.Context(), conn, db.RejectListByTeamParams{
				TeamID: team, BeforeAt: roomsensor.Forever, BeforeID: uuid.Max, HardwareID: new("dev:9"), Most: 1001,
			})
			return err
		}, func(p *storetest.Plan) {
			p.Each(func(node *storetest.Plan) {
				require.NotContains(t, node.Type, "Sort")
				if node.Relation == "rejected_uploads" {
					require.Equal(t, []string{"Index Scan", "rejected_uploads_team_idx", "Backward"}, []string{node.Type, node.Index, node.Direction})
					require.Contains(t, node.IndexCond, "hardware_id")
				}
			})
		})
	}
}

func TestRejectGroups(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.insertRejects(t, 12, f.TeamID, uuid.New(), nil)
	f.Exec(t, "UPDATE rejected_uploads SET replayed_at = now() WHERE hardware_id = 'dev:0' AND reason = 'no_metric'")
	groups := func(q roomsensor.RejectGroupQuery) []roomsensor.RejectGroup {
		q.Limit = 10
		groups, err := f.RejectGroups(t.Context(), f.TeamID, q)
		require.NoError(t, err)
		return groups
	}
	last := at("2026-01-01T00:00:12Z")
	all := []roomsensor.RejectGroup{
		{Reason: "no_metric", Unit: new("dev:0"), Count: 2, Replayed: 2, First: last.Add(-2 * time.Second), Last: last},
		{Reason: "unknown_unit", Unit: new("dev:1"), Count: 4, First: last.Add(-2 * time.Second), Last: last.Add(-time.Second)},
		{Reason: "no_metric", Unit: new("dev:1"), Count: 2, First: last.Add(-2 * time.Second), Last: last.Add(-2 * time.Second)},
		{Reason: "unknown_unit", Unit: new("dev:0"), Count: 4, First: last.Add(-2 * time.Second), Last: last.Add(-2 * time.Second)},
	}
	require.Equal(t, all, groups(roomsensor.RejectGroupQuery{}))
	require.Equal(t, all[2:], groups(roomsensor.RejectGroupQuery{Skip: 2}))
	require.Equal(t, []roomsensor.RejectGroup{all[0], all[2]}, groups(roomsensor.RejectGroupQuery{Reason: new(roomsensor.ReasonNoMetric)}))
	require.Equal(t, []roomsensor.RejectGroup{all[0], all[3]}, groups(roomsensor.RejectGroupQuery{Unit: new("dev:0")}))

	page := roomsensor.RejectGroupPage{
		Reasons: []roomsensor.Reason{roomsensor.ReasonUnknownUnit}, Unit: new("dev:1"), Limit: 3,
	}
	first, err := f.RejectsOfGroup(t.Context(), f.TeamID, page)
	require.NoError(t, err)
	require.Len(t, first, 3)
	page.After = first[2]
	second, err := f.RejectsOfGroup(t.Context(), f.TeamID, page)
	require.NoError(t, err)
	require.Len(t, second, 1)
	require.NotContains(t, first, second[0])
	left, err := f.CountRejectsOfGroup(t.Context(), f.TeamID, page)
	require.NoError(t, err)
	require.Equal(t, int64(1), left)
	found, err := f.TeamReject(t.Context(), f.TeamID, second[0].ID)
	require.NoError(t, err)
	require.Equal(t, new("dev:1"), found.HardwareID)
	_, err = f.TeamReject(t.Context(), uuid.New(), second[0].ID)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}

// TestRejectGroupListPlan checks that the groups of a team are counted in an index, without reading the rejects.
func TestRejectGroupListPlan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.insertRejects(t, 4_000, uuid.New(), nil)
	f.insertRejects(t, 400, f.TeamID)
	f.Exec(t, "VACUUM (ANALYZE) rejected_uploads")
	conn := f.PlanConn(t)
	conn.Check(t, func(int) error {
		_, err := db.New().RejectGroupList(t.Context(), conn, db.RejectGroupListParams{TeamID: f.TeamID, Most: 100})
		return err
	}, func(p *storetest.Plan) {
		p.Each(func(node *storetest.Plan) {
			if node.Relation == "rejected_uploads" {
				require.Equal(t, []string{"Index Only Scan", "rejected_uploads_group_idx"}, []string{node.Type, node.Index})
			}
		})
	})
}
