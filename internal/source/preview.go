package source

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// Tables is the database as NewPreview reads the units of a team.
type Tables interface {
	UnitTables
	// DisplayNames returns the display names of some devices of a team. One without a name has an empty one.
	DisplayNames(ctx context.Context, teamID uuid.UUID, deviceIDs []uuid.UUID) (map[uuid.UUID]string, error)
}

// maxPreviewed is the limit of readings, and of rejects, in a preview.
const maxPreviewed = 1_000

// Preview is what a worker would make of a message that arrives now (A11.11). It has at most 1,000 readings and 1,000
// rejects. A reading without a device would be rejected.
type Preview struct {
	Readings []PreviewReading `json:"readings"`
	Rejects  []PreviewReject  `json:"rejects"`
	Ignored  int              `json:"ignored"` // parts of the message
}

// PreviewReading is a reading of a preview, with a member for each of the five metrics.
type PreviewReading struct {
	Unit        string   `json:"unit"` // as the sender names it
	HardwareID  *string  `json:"hardware_id"`
	DeviceID    *string  `json:"device_id"`
	DisplayName *string  `json:"display_name"`
	MeasuredAt  string   `json:"measured_at"`
	BucketAt    string   `json:"bucket_at"`
	CO2         *float32 `json:"co2_ppm"`
	Temp        *float32 `json:"temp_c"`
	Humidity    *float32 `json:"humidity_pct"`
	Lux         *float32 `json:"lux"`
	Sound       *float32 `json:"spl_db"`
}

// PreviewReject is a reject of a preview.
type PreviewReject struct {
	Reason roomsensor.Reason `json:"reason"`
	Unit   *string           `json:"unit"` // nil for a message that is not mapped
	Detail string            `json:"detail"`
}

// NewPreview reads a message, whose arrival has a team, with a mapping. Its errors are those of the tables.
func NewPreview(
	ctx context.Context, tables Tables, m *mapping.Mapping, text []byte, arrival *roomsensor.Arrival,
) (*Preview, error) {
	message := Read(m, text, arrival)
	p := &Preview{Readings: []PreviewReading{}, Rejects: []PreviewReject{}, Ignored: message.Ignored}
	if refusal := message.NotMapped; refusal != nil {
		p.Rejects = append(p.Rejects, PreviewReject{refusal.Reason, nil, refusal.Detail})
	}
	units := message.Units[:min(len(message.Units), maxPreviewed)]
	search := NewSearch()
	search.AddUnits(*arrival.Team, units)
	known, err := search.Read(ctx, tables)
	if err != nil {
		return nil, err
	}
	var devices []uuid.UUID // of the readings
	for _, u := range units {
		id := known.HardwareID(*arrival.Team, u)
		of := u.Upload()
		resolution := of.Resolve(*arrival, known.Installations(id))
		for i := range of.Readings {
			if len(p.Readings) < maxPreviewed {
				p.Readings = append(p.Readings, previewReading(u.Name, id, &of.Readings[i].Measurement))
				devices = append(devices, resolution.Devices[i])
			}
		}
		for i := range resolution.Rejections {
			if rejection := &resolution.Rejections[i]; !u.Heard() && len(p.Rejects) < maxPreviewed {
				p.Rejects = append(p.Rejects, PreviewReject{rejection.Reason, &u.Name, rejection.Detail})
			}
		}
	}
	return p, p.nameDevices(ctx, tables, *arrival.Team, devices)
}

func previewReading(unit, hardwareID string, m *roomsensor.Measurement) PreviewReading {
	r := PreviewReading{
		Unit: unit, MeasuredAt: roomsensor.FormatTime(m.MeasuredAt), BucketAt: roomsensor.FormatTime(m.Bucket()),
	}
	if hardwareID != "" {
		r.HardwareID = &hardwareID
	}
	values := [roomsensor.MetricCount]**float32{
		roomsensor.CO2: &r.CO2, roomsensor.Temp: &r.Temp, roomsensor.Humidity: &r.Humidity, roomsensor.Lux: &r.Lux,
		roomsensor.Sound: &r.Sound,
	}
	for _, metric := range roomsensor.Metrics {
		if x, ok := m.Values.Get(metric); ok {
			*values[metric] = &x
		}
	}
	return r
}

// nameDevices sets the devices of the readings, and their names.
func (p *Preview) nameDevices(ctx context.Context, tables Tables, team uuid.UUID, devices []uuid.UUID) error {
	names, err := tables.DisplayNames(ctx, team, devices)
	if err != nil {
		return err
	}
	for i, id := range devices {
		if id == uuid.Nil {
			continue
		}
		p.Readings[i].DeviceID = new(id.String())
		if name := names[id]; name != "" {
			p.Readings[i].DisplayName = &name
		}
	}
	return nil
}
