// Package store reads and writes the database. A Store has the methods of the packages below, which convert rows to the
// domain and SQLSTATEs to domain errors, and run what must happen in one transaction. They are the only packages that
// use db, the generated queries. A method that serves a team takes its id, and every query below it filters by team;
// operators, the worker and maintenance work on all teams.
//
//	pg        pools, roles, transactions, reads on standbys, errors of PostgreSQL, binary format, spans
//	ops       layout of the readings, figures of the database and its server, streams of uploads
//	fleet     teams, keys, devices, hardware units, assignments; what the API counts and remembers of requests
//	feed      the change feed: watermark, rounds, purge
//	readings  pages, statistics, exports, aggregates, coverage, nights
//	write     batches of the worker, rejects
//	current   the live snapshot: newest readings and the statistics of 24 hours
//	people    users, memberships, sessions, sign-in, the audit log, what is stored about people whom assignments name
//	alerts    alerts, the rounds that evaluate them, mails to members
//
// Imports go down only: pg <- {ops, fleet, alerts} <- {feed, readings} <- write <- {current, people}.
package store
