package docs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// section is a group of the navigation.
type section struct {
	Title string
	Pages []link
}

// link is a page in the navigation.
type link struct {
	Path  string // below /docs; empty for the start page
	Text  string
	About string // one sentence, for indexes and the description of the page
	File  string // Markdown file of the page; empty for other pages
}

// ForOperators reports whether the section is in the menu of those who run the service. Its pages are of one menu.
func (s section) ForOperators() bool { return forOperators(s.Pages[0].Path) }

// forOperators reports whether a page is for those who run the service.
func forOperators(path string) bool { return strings.HasPrefix(path, "/operate") }

// guidesTitle is the title of the section that the page /guides lists.
const guidesTitle = "Guides"

// sections is the navigation: two menus, of which a page shows its own. The order of the pages is that of their links
// to the previous and the next page.
var sections = []section{
	{"Start", []link{
		{"", "Quickstart", "Read room sensor data over HTTP: devices, readings, CSV and uploads in 5 minutes.", "README.md"},
		{"/troubleshooting", "Troubleshooting", "Symptoms, what to check, and what to do.", "troubleshooting.md"},
		{"/changelog", "Changelog", "What changed for users, by version.", changelogFile},
	}},
	{"Reference", []link{
		{"/reference", "API reference", "Every endpoint, parameter and response of the API.", ""},
		{"/receiver", "Upload reference", "The endpoint for uploads, with its parameters and responses.", ""},
		{"/api-changes", "API changes", "What changed for programs, by date.", "api-changes.md"},
		{"/errors", "Errors", "Every error code: its cause, what to do, and whether to retry.", errorsFile},
		{"/contract", "Contract", "Every rule on which clients, devices and operators can rely.", "contract.md"},
		{"/glossary", "Glossary", "The terms of the product.", "glossary.md"},
		{"/architecture", "Architecture", "The way of a reading through the service, and the packages.", "architecture.md"},
	}},
	{guidesTitle, []link{
		guide("authentication", "Authentication", "Send your API key, understand its scope, and fix a 401."),
		guide("conventions", "Conventions", "Times, numbers, nulls, ids, request ids, ETags and compression."),
		guide("devices", "Devices", "Find devices by tag, read their latest state, and their assignments."),
		guide("time-windows", "Time windows", "Choose a period with from, to, last or an assignment."),
		guide("paging", "Paging", "Read all pages of a list, and stop at the first error."),
		guide("aggregates", "Aggregates", "Hours and days: minimum, maximum, mean and count of each metric."),
		guide("coverage", "Coverage", "Find out whether last night's data arrived, and what is missing."),
		guide("nights-per-athlete", "Nights per athlete", "For analysts: nights in pandas, R or a spreadsheet."),
		guide("csv", "CSV export", "Export readings of many devices, and load them into pandas, R and other tools."),
		guide("parquet", "Parquet export", "Export readings with their types, for pandas, DuckDB and other tools."),
		guide("spreadsheets", "Spreadsheets", "Load readings into Excel, LibreOffice and Google Sheets."),
		guide("command-line", "Command line", "Read and export readings of any period with the program roomsensor."),
		guide("python", "Python client", "Read, export and upload from Python with one file: data frames, retries, changes."),
		guide("clients", "Go and generated clients", "Use the Go client, or generate one for another language."),
		guide("recipes", "Recipes", "Missing nights, joins, occupancy, DuckDB, a mail about last night, plots and Grafana."),
		guide("prometheus", "Prometheus", "Scrape the newest values of all rooms, and be alerted."),
		guide("dashboard", "Use the dashboard", "The pages for coaches and managers, task by task."),
		guide("nights", "Nights", "What the air of the rooms was like at night: the verdict, its limits, and the values."),
		guide("idempotency", "Changes and idempotency", "Rename and tag devices, with retries that are safe."),
		guide("rate-limits", "Rate limits", "How many requests a key may make, and how to retry."),
		guide("changes", "Change feed", "Keep a complete copy of the readings, late ones included."),
		guide("late-data", "Late data", "Why old readings appear later, and how to keep a copy complete."),
		guide("uploads", "Uploads", "Deliver readings from devices and gateways."),
		guide("sources", "Sources", "Connect devices and platforms that send their own formats."),
		guide("notehub", "Notehub", "Connect Notecards behind Blues Notehub in five minutes."),
		guide("the-things-stack", "The Things Stack", "Connect LoRaWAN sensors behind The Things Stack."),
		guide("chirpstack", "ChirpStack", "Connect LoRaWAN sensors behind ChirpStack."),
		guide("airgradient", "AirGradient", "Connect AirGradient monitors through nginx."),
		guide("home-assistant", "Home Assistant", "Connect the sensors of Home Assistant."),
		guide("telegraf", "Telegraf", "Connect Telegraf, or another writer of line protocol."),
		guide("mqtt", "MQTT", "Connect Zigbee2MQTT, Tasmota, Shelly and others through your broker."),
		guide("csv-history", "Import from CSV", "Import old readings from exports, data loggers and spreadsheets."),
	}},
	{"Operate", []link{
		{"/operate", "Overview", "Guides for those who run the service.", "operate/README.md"},
		operate("containers", "Containers", "The image, and Compose for evaluation and production."),
		operate("kubernetes", "Kubernetes", "Manifests, secrets, upgrades and autoscaling."),
		operate("packages", "Packages", "Debian and RPM packages: verify, install, upgrade and remove them."),
		operate("systemd", "systemd", "Services of a Linux machine: units, users, settings and limits."),
		operate("configuration", "Configuration", "Every setting: its variable, default, processes and meaning."),
		operate("upgrades", "Upgrades", "Upgrade and go back without downtime, and the rules for migrations."),
		operate("database-upgrades", "Database upgrades", "Upgrade PostgreSQL and TimescaleDB, and go back."),
		operate("support", "Support and deprecation", "Supported versions, and what a release keeps."),
		operate("dashboard", "Dashboard", "Pages for people: settings, accounts, sessions and limits."),
		operate("alerts", "Alerts and mails", "Evaluate alerts and send mails: settings, promises, failures."),
		operate("proxies", "Proxies and browsers", "Addresses in links, client addresses in the log, and CORS."),
		operate("security", "Roles and TLS", "The rights of each process, and encrypted connections."),
		operate("asvs", "ASVS and OpenSSF", "How each requirement of OWASP ASVS 5.0, level 2, is met, or why not."),
		operate("audit", "Audit log", "Who changed what, how long it is kept, and who can change it."),
		operate("personal-data", "Personal data", "Answer requests for access and erasure, and what is stored for how long."),
		operate("retention", "Retention and archive", "Delete readings by age, and keep old months as Parquet files."),
		operate("timescaledb", "TimescaleDB", "The two editions, and the layout on disk."),
		operate("pgbouncer", "PgBouncer", "Share the database connections of many replicas."),
		operate("cluster", "Cluster", "Run several of each process, and what each failure costs."),
		operate("scaling", "Scaling", "Scale workers and receivers on their metrics."),
		operate("sizing", "Sizing", "Disks, processors, memory and connections for 1 to a million devices."),
		operate("monitoring", "Monitoring", "Scrape the metrics, and install alerts and dashboards."),
		operate("slo", "Objectives and probe", "What users can expect, error budgets, and a probe from outside."),
		operate("incidents", "Incidents", "Disk full, database or NATS lost, a leaked key, a bad deployment: step by step."),
		operate("metrics", "Metrics and log fields", "Every metric of every process, and every field of the log."),
		operate("tracing", "Tracing", "Send traces of requests and uploads to an OpenTelemetry collector."),
		operate("doctor", "Doctor", "Check settings and state, and learn what to do."),
		operate("rejects", "Rejects", "What could not be stored, why, and how to fix it."),
		operate("reliability", "Reliability", "What ingest guarantees, and the trial that proves it."),
		operate("backup", "Backup and restore", "Back up, restore to any moment, and replay the stream."),
		operate("late-bursts", "Late bursts", "What happens when a fleet comes back late, with figures."),
		operate("abuse", "Abuse", "What a hostile client cannot do to other teams."),
	}},
	{"Runbooks", runbooks()},
}

// changelogFile is the changelog, relative to docs/.
const changelogFile = "../CHANGELOG.md"

func guide(name, text, about string) link {
	return link{"/guides/" + name, text, about, "guides/" + name + ".md"}
}

func operate(name, text, about string) link {
	return link{"/operate/" + name, text, about, "operate/" + name + ".md"}
}

// runbooks returns the links to the pages of the alerts. A page has the name of its alert, and begins with its meaning
// in bold.
func runbooks() (links []link) {
	names, err := fs.Glob(files, "operate/runbooks/*.md")
	if err != nil {
		panic(err) // The pattern is a constant.
	}
	for _, name := range names {
		_, text, _ := strings.Cut(string(mustRead(name)), "**")
		about, _, _ := strings.Cut(text, "**")
		page := strings.TrimSuffix(name, ".md")
		links = append(links, link{"/" + page, strings.TrimPrefix(path.Base(page), "Roomsensor"), about, name})
	}
	return links
}

// pages are the pages of the navigation, in its order.
var pages = func() (all []link) {
	for _, s := range sections {
		all = append(all, s.Pages...)
	}
	return all
}()

// neighbors returns the pages before and after a page in its menu, or nil.
func neighbors(path string) (previous, next *link) {
	i := slices.IndexFunc(pages, func(l link) bool { return l.Path == path })
	at := func(i int) *link {
		if i < 0 || i >= len(pages) || forOperators(pages[i].Path) != forOperators(path) {
			return nil
		}
		return &pages[i]
	}
	if i < 0 {
		return nil, nil
	}
	return at(i - 1), at(i + 1)
}

// pageLink returns the link to a page of the navigation, whose path is a constant.
func pageLink(path string) link {
	return pages[slices.IndexFunc(pages, func(l link) bool { return l.Path == path })]
}

// pageOf returns the path of the page of a Markdown file, relative to docs/, and whether there is one.
func pageOf(file string) (path string, ok bool) {
	if i := slices.IndexFunc(pages, func(l link) bool { return l.File == file && file != "" }); i >= 0 {
		return pages[i].Path, true
	}
	// These pages have no file, and neither have error pages: errors/overloaded.
	ok = strings.HasPrefix(file, "errors/") || slices.Contains([]string{"reference", "receiver", "guides"}, file)
	return "/" + file, ok
}
