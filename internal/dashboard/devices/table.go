package devices

import (
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// deviceTable is a page of the numbers that the charts show, the newest first.
type deviceTable struct {
	Metrics     []string // names with units
	Rows        []deviceRow
	Total       int // rows of all pages
	Page, Pages int
}

// deviceRow is one reading or one hour.
type deviceRow struct {
	From  time.Time
	Cells []deviceCell
	Delay string // of the reading that arrived latest, in words; empty if none arrived late
}

// deviceCell is a value of a metric. The extremes are empty if they are the same.
type deviceCell struct{ Value, Low, High string }

// newDeviceTable returns a page of the table; pages are counted from 1. A page that does not exist is the nearest one.
func newDeviceTable(f wording.Format, buckets []deviceBucket, number int) deviceTable {
	t := deviceTable{Total: len(buckets), Pages: max(1, (len(buckets)+rowsPerPage-1)/rowsPerPage)}
	t.Page = min(max(number, 1), t.Pages)
	for _, m := range roomsensor.Metrics {
		t.Metrics = append(t.Metrics, wording.MetricTexts[m].Name+" "+f.Unit(m))
	}
	newest := len(buckets) - (t.Page-1)*rowsPerPage
	shown := buckets[max(0, newest-rowsPerPage):newest]
	for i := range slices.Backward(shown) {
		t.Rows = append(t.Rows, newDeviceRow(f, &shown[i]))
	}
	return t
}

func newDeviceRow(f wording.Format, b *deviceBucket) deviceRow {
	row := deviceRow{From: b.from}
	for _, m := range roomsensor.Metrics {
		value, cell := b.metrics[m], deviceCell{}
		if value.Count > 0 {
			cell.Value = f.Digits(m, value.Mean)
		}
		if value.Min < value.Max {
			cell.Low, cell.High = f.Digits(m, value.Min), f.Digits(m, value.Max)
		}
		row.Cells = append(row.Cells, cell)
	}
	if b.delay > 0 {
		row.Delay = wording.Span(b.delay)
	}
	return row
}

// Newer and Older return the neighboring pages, or 0.
func (t *deviceTable) Newer() int { return t.Page - 1 }

// Older returns the page of older rows, or 0.
func (t *deviceTable) Older() int {
	if t.Page == t.Pages {
		return 0
	}
	return t.Page + 1
}
