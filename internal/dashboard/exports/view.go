package exports

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
	"roomsensor/internal/wording"
)

// exportView is the data of the page Export.
type exportView struct {
	Form    exportForm
	Zone    string
	Zones   []string
	Devices []page.Choice
	Metrics []page.Choice
	Errors  page.FormErrors
	Result  *exportResult // nil before the rows are counted
}

func newExportView(v *page.Visit, form exportForm, devices []roomsensor.NamedDevice) *exportView {
	view := &exportView{Form: form, Zone: v.Zone().String(), Zones: timezone.Names()}
	for i := range devices {
		id := devices[i].ID.String()
		name := wording.TextOr(devices[i].DisplayName, "unnamed, "+id)
		view.Devices = append(view.Devices, page.Choice{
			Value: id, Text: name, Chosen: slices.Contains(form.Devices, id),
		})
	}
	wording.SortNames(view.Devices, func(c *page.Choice) string { return c.Text })
	for _, m := range roomsensor.Metrics {
		chosen := len(form.Metrics) == 0 || slices.Contains(form.Metrics, m.String())
		view.Metrics = append(view.Metrics, page.Choice{
			Value: m.String(), Text: wording.MetricTexts[m].Name, Chosen: chosen,
		})
	}
	return view
}

// Download names the format of the download.
func (view *exportView) Download() string { return formats[view.Form.Format].name }

// exportResult is the size of an export, and how to get it.
type exportResult struct {
	Rows, Size string
	Empty      bool
	TooMany    string // the number of rows that are too many, or empty
	FitsUntil  *time.Time
	FitsPath   string
	Command    string // of roomsensor export
	Path       string // of the download
	Devices    int
	Samples    []sample
	From, To   time.Time
}

// sample is a program that does what the page does.
type sample struct{ ID, Language, Text string }

// measured adds the size of an export and how to get it.
func (view *exportView) measured(
	v *page.Visit, publicURL string, query url.Values, size *export.Size, devices []roomsensor.NamedDevice,
) {
	r := &exportResult{
		Rows: wording.Plural(size.Lines, "row"), Empty: size.Rows == 0, Devices: size.Devices,
		Size:    byteText(view.Form.bytes(size, devices)),
		Path:    v.Path("export", formats[view.Form.Format].file) + "?" + query.Encode(),
		Command: view.command(v, publicURL, query),
	}
	r.From, _ = roomsensor.ParseTime(query.Get("from"))
	r.To, _ = roomsensor.ParseTime(query.Get("to"))
	if size.Lines != size.Rows {
		r.Rows += " with " + wording.Plural(size.Rows, "reading")
	}
	if size.TooMany != nil {
		r.TooMany = size.TooMany.Count()
		if r.FitsUntil = size.TooMany.FitsUntil; r.FitsUntil != nil {
			r.FitsPath = view.Form.until(v, *r.FitsUntil)
		}
	} else if !view.Form.Spreadsheet() {
		r.Samples = view.samples(publicURL, query)
	}
	view.Result = r
}

// bytes estimates the size of a file before compression in transit. It is right within a third.
func (f *exportForm) bytes(size *export.Size, devices []roomsensor.NamedDevice) int {
	const timeBytes, idBytes, valueBytes, parquetShare, labelBytes = 21, 37, 6, 7, 20
	local := 0
	if f.TimeZone != "" && f.Format == "csv" {
		local = timeBytes + 5 // The offset.
	}
	if f.wide() {
		return size.Lines*(timeBytes+local+size.Devices*size.Metrics) + size.Rows*size.Metrics*(valueBytes-1)
	}
	names := 0
	for i := range devices {
		if devices[i].DisplayName != nil {
			names += len(*devices[i].DisplayName)
		}
	}
	line := timeBytes + local + idBytes + names/max(1, len(devices)) + 1 + size.Metrics*valueBytes + 3
	if f.IngestedAt {
		line += timeBytes + 7 // The fraction of a second.
	}
	if f.Assigned && f.Format == "csv" {
		line += idBytes + labelBytes
	}
	if f.Format == "parquet" {
		return size.Rows * line / parquetShare
	}
	return size.Rows * line
}

// byteText returns a number of bytes in words.
func byteText(n int) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "\u00a0MB"
	case n >= 1000:
		return strconv.Itoa((n+500)/1000) + "\u00a0kB"
	}
	return "less than 1\u00a0kB"
}

// samples returns programs that request the same export from the API. The query is percent-encoded, so that no text of
// a person can end a string of a program.
func (view *exportView) samples(publicURL string, query url.Values) []sample {
	file := "readings." + view.Form.Format
	address := publicURL + "/v1/" + file + "?" + query.Encode()
	compressed, arguments, r := "--compressed ", "", "df <- read.csv(text = resp_body_string(response))"
	switch view.Form.Excel {
	case "true": // A byte order mark, which pandas knows.
		r = `df <- read.csv(text = sub("^\ufeff", "", resp_body_string(response)))`
	case "comma":
		arguments, r = `, sep=";", decimal=","`, `df <- read.csv2(text = sub("^\ufeff", "", resp_body_string(response)))`
	}
	pandas := `pd.read_csv(io.BytesIO(response.content), parse_dates=["bucket_at"]` + arguments + `)`
	if view.Form.Format == "parquet" {
		compressed, pandas, r = "", "pd.read_parquet(io.BytesIO(response.content))",
			"df <- arrow::read_parquet(resp_body_raw(response))"
	}
	const key = "YOUR_API_KEY"
	curl := fmt.Sprintf("curl -sS --fail-with-body %s-o %s -H \"Authorization: Bearer %s\" \\\n  \"%s\"",
		compressed, file, key, address)
	python := fmt.Sprintf("import io\nimport pandas as pd\nimport requests\n\nresponse = requests.get(\"%s\",\n"+
		"    headers={\"Authorization\": \"Bearer %s\"}, timeout=600)\nresponse.raise_for_status()\ndf = %s",
		address, key, pandas)
	inR := fmt.Sprintf("library(httr2)\n\nresponse <- request(\"%s\") |>\n  req_auth_bearer_token(\"%s\") |>\n"+
		"  req_perform()\n%s", address, key, r)
	return []sample{{"curl", "curl", curl}, {"python", "Python", python}, {"r", "R", inR}}
}

// command returns the command line that exports the same, of any size; for a spreadsheet, every reading as CSV.
func (view *exportView) command(v *page.Visit, publicURL string, query url.Values) string {
	words := []string{
		"ROOMSENSOR_API_KEY=YOUR_API_KEY roomsensor export --roomsensor-url", publicURL,
		"--from", query.Get("from"), "--to", query.Get("to"),
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if key, ok := strings.CutPrefix(name, "metadata."); ok {
			words = append(words, "--metadata", shellQuote(key+"="+query.Get(name)))
		}
	}
	if view.Form.Spreadsheet() {
		query = maps.Clone(query)
		query.Set("include", "assignment")
		query.Set(timeZoneField, v.Zone().String())
		query.Set(export.ExcelParameter, map[bool]string{true: "comma", false: "true"}[v.DecimalComma()])
	}
	for _, name := range []string{
		"devices", "metrics", "shape", "columns", "include", timeZoneField, export.ExcelParameter,
	} {
		if value := query.Get(name); value != "" {
			words = append(words, "--"+strings.ReplaceAll(name, "_", "-"), value)
		}
	}
	extension := "csv"
	if view.Form.Format == "parquet" {
		extension = view.Form.Format
	}
	return strings.Join(append(words, "-o", "readings."+extension), " ")
}

// shellQuote returns a text as one word of a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
