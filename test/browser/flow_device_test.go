package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testDevice renames the pool and changes its tags.
func (f *flow) testDevice(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Editor)
	p.enter(t, "Pool")
	p.fill(t, "Name", "Lap pool")
	p.enter(t, "Save name")
	require.Contains(t, p.text(t), "The name was changed.")
	p.fill(t, "New tag", "floor")
	p.fill(t, "Value", "2")
	p.enter(t, "Add tag")
	require.Contains(t, p.text(t), "The tag floor was saved.")
	p.fill(t, "building", "annex")
	p.enter(t, "Save tag building")
	require.Contains(t, p.text(t), "building=annex, floor=2")
	p.enter(t, "Remove tag floor")
	require.Contains(t, p.text(t), "The tag floor was removed.")
	p.enter(t, "Overview")
	p.wait(t, tiles+` === 'Lap pool,Sauna'`)
	p.expand(t, "Search and group")
	p.choose(t, "Tag", "building: annex")
	p.wait(t, tiles+` === 'Lap pool'`)
	p.enter(t, "Lap pool")
	p.expand(t, "Retire this device")
	p.enter(t, "Retire this device")
	require.Contains(t, p.text(t), "The device is retired.")
	p.enter(t, "All retired devices")
	require.Contains(t, p.text(t), "Lap pool")
	p.requireQuiet(t)
}

// testLimits lowers the limits of CO2, which makes a night bad that was good before.
func (f *flow) testLimits(t *testing.T) {
	t.Helper()
	f.exec(t, `DELETE FROM assignments WHERE label = 'Old sauna' AND device_id IN (SELECT id FROM devices WHERE team_id = $1)`, f.team)
	night := f.path + "/nights?night=" + time.Now().In(flowZone).AddDate(0, 0, -2).Format(time.DateOnly)
	p := f.as(t, roomsensor.Admin)
	p.open(t, night)
	require.Contains(t, p.text(t), "Ana Ruiz")
	require.NotContains(t, p.text(t), "above")
	p.enter(t, "Team")
	p.fill(t, "Stuffy above", "700") // Of CO2, which is the first metric.
	require.Equal(t, "co2_ppm_warn_high", evaluate[string](t, p, `document.activeElement.id`))
	p.fill(t, "Bad above", "750")
	p.enter(t, "Save")
	require.Contains(t, p.text(t), "saved")
	p.open(t, night)
	require.Contains(t, p.text(t), "above 750")
	p.requireQuiet(t)
}

// testChart reads the values of a chart with the arrow keys and with the pointer.
func (f *flow) testChart(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Viewer)
	p.enter(t, "Pool")
	const chart = `document.querySelector('.chart-frame')`
	p.wait(t, chart+`.querySelector('.chart-cursor') !== null`)
	columns := evaluate[int](t, p, chart+`.querySelector('svg[data-values]').dataset.values.split(',').length`)
	from := time.UnixMilli(evaluate[int64](t, p, `Number(`+chart+`.querySelector('svg[data-values]').dataset.from)`))
	// want is what the page says of a column.
	want := func(column int) string {
		bucket := from.Add(time.Duration(column) * roomsensor.BucketLength)
		return bucket.In(flowZone).Format("Mon 2 Jan, 15:04") + fmt.Sprintf("\n%d ppm", 700+10*(bucket.Unix()/300%20))
	}
	shown := `(` + chart + `.querySelector('.chart-cursor.on .chart-reading')?.innerText ?? '')`

	p.tabTo(t, "CO₂ ppm: values. Use the arrow keys.")
	p.press(t, kb.Home+kb.ArrowRight+kb.ArrowRight+kb.ArrowRight+kb.ArrowLeft)
	require.Equal(t, want(2), evaluate[string](t, p, shown))
	require.Equal(t, want(2), evaluate[string](t, p, `document.activeElement.getAttribute('aria-valuetext')`))
	require.Len(t, evaluate[[]string](t, p, `[...document.querySelectorAll('.chart-cursor.on')].map((c) => c.className)`), 5,
		"all charts show the same time")
	p.press(t, kb.End)
	require.Contains(t, evaluate[string](t, p, shown), "no data", "the readings end before")
	p.press(t, kb.Escape)
	require.Empty(t, evaluate[string](t, p, shown))

	for _, part := range []float64{0.01, 0.5, 0.9} {
		p.hover(t, chart+`.querySelector('.chart-cursor')`, part)
		column := int(part * float64(columns))
		require.Equal(t, want(column), evaluate[string](t, p, shown))
		require.True(t, evaluate[bool](t, p, `(() => {
			const box = `+chart+`.querySelector('.chart-reading').getBoundingClientRect()
			return box.left >= 0 && box.right <= innerWidth
		})()`), "the values are in the window")
	}

	p.enter(t, "Compare with other rooms")
	p.choose(t, "Line 2", "Sauna")
	p.enter(t, "Compare")
	p.enter(t, "24 hours")
	p.tabTo(t, "CO₂ ppm: values. Use the arrow keys.")
	p.press(t, kb.Home+kb.ArrowRight+kb.ArrowRight)
	require.Regexp(t, `Pool: \d+ ppm\nSauna: no data$`, evaluate[string](t, p, shown))
	p.requireQuiet(t)
}

// hover moves the pointer to a part of the width of an element.
func (p *tab) hover(t *testing.T, element string, part float64) {
	t.Helper()
	at := evaluate[[]float64](t, p, `(() => {
		`+element+`.scrollIntoView({ block: 'center', behavior: 'instant' })
		const box = `+element+`.getBoundingClientRect()
		return [box.left, box.top, box.width, box.height]
	})()`)
	p.do(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0]+at[2]*part, at[1]+at[3]/2))
}

// testMany renames a device and moves a person with a table of all devices, after a wrong line.
func (f *flow) testMany(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Editor)
	var problems []string
	look := func(name string) {
		if f.view == desktop {
			problems = append(problems, p.problems(t, name, views)...)
		}
	}
	p.enter(t, "Change many")
	look("many")
	p.fill(t, "Table", "name,new name,person\nPool,Big pool,Ana Ruiz\nSauna,,Ana Ruiz\n")
	p.enter(t, "Check the changes")
	p.requireText(t, "Line 3: Ana Ruiz is on line 2, too.")
	look("many-refused")
	p.fill(t, "Table", "name,new name,person\nPool,Big pool,\nSauna,,Ana Ruiz\n")
	p.enter(t, "Check the changes")
	p.requireText(t, "This will change 2 devices")
	look("many-preview")
	p.enter(t, "Save all changes")
	p.requireText(t, "Changed 2 devices.")
	require.Empty(t, problems, strings.Join(problems, "\n"))
	p.requireQuiet(t)
}
