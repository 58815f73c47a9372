// Package cursor encrypts and decrypts the opaque cursors of lists. A cursor contains all that the next page needs,
// encrypted and authenticated, so that every replica with the same secret can serve it (decision 11).
//
//	cursor.go    State, the content of a cursor; Sealer, which encrypts it; the checks of decision 12
//	encoding.go  the binary encoding of a State
package cursor
