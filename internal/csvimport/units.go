package csvimport

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
)

// MaxUnits is the most units of an import, which bounds its memory.
const MaxUnits = 100_000

// Units are hardware ids by the id or the name of a device. A name that several units have has an empty one.
type Units map[string]string

// ReadUnits reads a CSV file with the column hardware_id and at least one of device_id and display_name, such as
// 'roomsensor get devices --output csv' prints. Devices without a unit are left out. Its error is a sentence without a
// period.
func ReadUnits(in io.Reader) (Units, error) {
	f, err := open(bufio.NewReaderSize(in, maxRecord), &Options{})
	if err != nil {
		return nil, err
	}
	hardware, err := columnNamed(f.header, "hardware_id")
	if err != nil {
		return nil, err
	}
	id, withoutID := columnNamed(f.header, "device_id")
	name, withoutName := columnNamed(f.header, "display_name")
	if withoutID != nil && withoutName != nil {
		return nil, withoutID
	}
	units := Units{}
	for {
		r, err := f.records.next()
		switch {
		case errors.Is(err, io.EOF):
			return units, nil
		case err != nil:
			return nil, err
		case len(r.fields) != len(f.header):
			return nil, fmt.Errorf("line %d is not a line of this CSV file", r.line)
		case r.fields[hardware] == "":
			continue
		case !roomsensor.IsHardwareID(r.fields[hardware]):
			return nil, fmt.Errorf("line %d has %.100q, which is not a hardware id: dev: and 1 to 20 digits",
				r.line, r.fields[hardware])
		}
		if id >= 0 {
			units.add(r.fields[id], r.fields[hardware])
		}
		if name >= 0 {
			units.add(r.fields[name], r.fields[hardware])
			if guarded := csvenc.Guard(r.fields[name]); guarded != r.fields[name] {
				units.add(guarded, r.fields[hardware])
			}
		}
		if len(units) > 3*MaxUnits {
			return nil, fmt.Errorf("there are more than %d units", MaxUnits)
		}
	}
}

func (u Units) add(key, hardware string) {
	if known, ok := u[key]; ok && known != hardware {
		hardware = ""
	}
	u[key] = hardware
}

// find returns the hardware id for the first of some names of a device that is known. problem is a predicate.
func (u Units) find(names ...string) (hardware, problem string) {
	for _, name := range names {
		hardware, ok := u[name]
		switch {
		case name == "" || !ok:
			continue
		case hardware == "":
			return "", fmt.Sprintf("has the unit %.100q, for which --units has several hardware ids", name)
		}
		return hardware, ""
	}
	return "", fmt.Sprintf("has the unit %.100q, which --units does not have", names[0])
}
