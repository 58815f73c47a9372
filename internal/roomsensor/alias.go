package roomsensor

import (
	"strconv"
	"strings"
)

// The number of hexadecimal digits of an alias that is compared by its digits (alias rule, A12.1).
const (
	minAliasDigits = 12
	maxAliasDigits = 16
)

// CheckAlias checks that an alias has 1 to 200 characters without control characters, and no blanks beside hexadecimal
// digits (alias rule, A12.1), and that it is not a hardware id, which needs no alias (A12.3). Its error is a sentence
// without a subject, as that of CheckName.
func CheckAlias(alias string) error {
	if IsHardwareID(alias) {
		return ruleError("is a hardware id, which needs no alias")
	}
	bare := strings.Join(strings.Fields(alias), "")
	if _, ok := aliasDigits(bare); ok && bare != alias {
		return ruleError("has hexadecimal digits with blanks. Write " + bare)
	}
	return CheckName(alias)
}

// NormalizeAlias returns the key by which a valid alias is compared: its hexadecimal digits in lower case if it has the
// form of hexadecimal digits, otherwise its bytes (alias rule, A12.1). Two aliases are the same if their keys are
// equal.
func NormalizeAlias(alias string) string {
	if digits, ok := aliasDigits(alias); ok {
		return digits
	}
	return alias
}

// AliasHardwareID returns "dev:" and the decimal value of the hexadecimal digits of an alias (hardware id rule, A12.2),
// and false for an alias that is compared by its bytes. Aliases that differ in leading zeros have the same hardware id.
func AliasHardwareID(alias string) (string, bool) {
	digits, ok := aliasDigits(alias)
	if !ok {
		return "", false
	}
	value, err := strconv.ParseUint(digits, 16, 64)
	return "dev:" + strconv.FormatUint(value, 10), err == nil
}

// aliasDigits returns 12 to 16 hexadecimal digits in lower case. "dev:", or "eui-" or "0x" in any letter case may
// precede them, and one of the separators ":", "-" and "." may be between all pairs or all fours of them.
func aliasDigits(alias string) (string, bool) {
	digits := strings.TrimPrefix(alias, "dev:")
	for _, prefix := range []string{"eui-", "0x"} {
		if len(alias) > len(prefix) && strings.EqualFold(alias[:len(prefix)], prefix) {
			digits = alias[len(prefix):]
		}
	}
	for _, group := range []int{2, 4} {
		if len(digits) > group && strings.IndexByte(":-.", digits[group]) >= 0 {
			joined, ok := joinGroups(digits, digits[group:group+1], group)
			if !ok {
				return "", false
			}
			digits = joined
			break
		}
	}
	digits = strings.ToLower(digits)
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' || 'a' <= r && r <= 'f' }
	ok := minAliasDigits <= len(digits) && len(digits) <= maxAliasDigits &&
		!strings.ContainsFunc(digits, func(r rune) bool { return !isDigit(r) })
	return digits, ok
}

// joinGroups returns the digits of groups that a separator divides, and false if a group has another length.
func joinGroups(text, separator string, length int) (string, bool) {
	groups := strings.Split(text, separator)
	for _, group := range groups {
		if len(group) != length {
			return "", false
		}
	}
	return strings.Join(groups, ""), true
}
