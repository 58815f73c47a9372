// Package alerting has the rules of alerts, and what mails about them and about nights contain. It does no I/O: package
// notify evaluates the rules, and package store/alerts stores the result.
//
//	alert.go  settings and rules of alerts, and their evaluation
//	mail.go   which mails a member wants and when, mails and morning reports
package alerting
