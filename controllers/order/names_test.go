package order

import "testing"

func TestFoldName_compares_as_keystones_database_does(t *testing.T) {
	for name, same := range map[string]string{
		"Admin":         "admin",
		"ADMIN  ":       "admin",
		"ádmin":         "admin", // one code point
		"a\u0301dmin":   "admin", // a letter and a combining accent
		"Service-Nova":  "service-nova",
		"übung":         "ubung",
		" admin":        " admin", // spaces in front do count
		"workflow":      "workflow",
		"プロジェクト":        "フロシェクト", // voiced marks are accents to the database
		"admin\u200b":   "admin\u200b",
		"\xff\xfebytes": "\ufffd\ufffdbytes",
	} {
		if got := FoldName(name); got != same {
			t.Errorf("FoldName(%q) is %q, want %q", name, got, same)
		}
	}
}
