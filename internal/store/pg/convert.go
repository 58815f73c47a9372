package pg

import "time"

// Convert converts rows to the domain. The result is never nil, so that an empty list becomes [] in JSON.
func Convert[Row, T any](rows []Row, convertRow func(*Row) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = convertRow(&rows[i])
	}
	return list
}

// TryConvert is Convert for rows that may be invalid.
func TryConvert[Row, T any](rows []Row, convertRow func(*Row) (T, error)) ([]T, error) {
	list := make([]T, len(rows))
	for i := range rows {
		var err error
		if list[i], err = convertRow(&rows[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// UTC returns a time of the database in UTC; nil for null.
func UTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.UTC())
}

// Text returns a text of the database; empty for null.
func Text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// Texts returns values of a text type as texts.
func Texts[T ~string](all []T) []string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = string(all[i])
	}
	return texts
}
