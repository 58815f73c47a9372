// Package backup is the drill of docs/operate/backup.md: while units upload without a pause, it backs the service up,
// loses the database, restores it with the commands of the page, and compares everything that is stored with a ledger
// of what was sent.
//
//	page_test.go     the commands of the page
//	env_test.go      the servers and processes of a drill
//	drill_test.go    the steps that the drills share, and the client that keeps a copy
//	restore_test.go  the drills with the tools of PostgreSQL; pgbackrest_test.go the one with pgBackRest
package backup
