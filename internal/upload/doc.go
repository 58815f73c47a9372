// Package upload is the wire format of uploads: what a device sends, how much
// of it can be used, and what is left of it for an operator where it cannot
// (decision 41). It knows the text alone; which device a unit sits in is for
// others to say.
package upload
