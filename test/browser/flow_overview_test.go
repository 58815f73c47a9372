package browser_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// tiles lists the names of the devices that the overview shows.
const tiles = `[...document.querySelectorAll('.tile h2')].map((h) => h.innerText).join()`

// testOverview filters the overview by search, tag and verdict.
func (f *flow) testOverview(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Viewer)
	p.wait(t, tiles+` === 'Pool,Sauna'`)
	apply := func() {
		if !p.view.scripts {
			p.enter(t, "Apply") // With scripts, the page follows what people enter.
		}
	}
	p.expand(t, "Search and group")
	for _, search := range []struct{ text, want string }{{"sau", "Sauna"}, {f.unit[4:], "Pool"}, {"ana r", "Pool"}} {
		p.fill(t, "Search", search.text)
		apply()
		p.wait(t, tiles+` === '`+search.want+`'`)
	}
	p.open(t, f.path)
	p.expand(t, "Search and group")
	p.choose(t, "Tag", "building: spa")
	apply()
	p.wait(t, tiles+` === 'Sauna'`)

	p.open(t, f.path)
	p.expand(t, "Search and group")
	p.choose(t, "Show", "Silent devices")
	apply()
	p.wait(t, tiles+` === 'Sauna'`)
	p.fill(t, "Search", "pool")
	apply()
	p.wait(t, tiles+` === ''`)
	p.requireText(t, "No device matches.")
	p.enter(t, "Show all devices")
	p.wait(t, tiles+` === 'Pool,Sauna'`)
	p.requireQuiet(t)
}

// testLiveTile uploads as the unit of the pool while its tile is shown.
func (f *flow) testLiveTile(t *testing.T) {
	t.Helper()
	id, credential, hash := roomsensor.GenerateKey(roomsensor.IngestKey)
	f.exec(t, `INSERT INTO ingest_keys (key_id, team_id, secret_sha256) VALUES ($1, $2, $3)`, id, f.team, hash[:])
	p := f.as(t, roomsensor.Viewer)
	p.requireText(t, "Live. Up to date at")
	evaluate[string](t, p, `window.mark = 'not loaded again'`)
	p.tabTo(t, "Pool")
	f.upload(t, credential, f.unit, 1777, time.Now())
	p.wait(t, `document.querySelector('.tile').innerText.includes('1777')`)
	require.Equal(t, "not loaded again", evaluate[string](t, p, `window.mark`))
	require.Equal(t, "Pool", p.focused(t).Name, "the focus stays on the tile")
	require.Contains(t, evaluate[string](t, p, `document.querySelector('.tile').innerText`), "high")
	p.requireQuiet(t)
}
