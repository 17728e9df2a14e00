package order

import "testing"

func TestContains(t *testing.T) {
	type object = map[string]any
	type list = []any
	cases := map[string]struct {
		have, want any
		equal      bool
	}{
		"a_field_of_somebody_else_is_no_difference": {object{"a": "1", "b": "2"}, object{"a": "1"}, true},
		"a_missing_field_is":                        {object{"b": "2"}, object{"a": "1"}, false},
		"another_value_is":                          {object{"a": "2"}, object{"a": "1"}, false},
		"fields_deep_down_count":                    {object{"spec": object{"x": int64(1)}}, object{"spec": object{"x": int64(2)}}, false},
		"server_defaults_deep_down_do_not":          {object{"spec": object{"x": int64(1), "y": true}}, object{"spec": object{"x": int64(1)}}, true},
		"a_longer_list_is_a_difference":             {object{"l": list{"a", "b"}}, object{"l": list{"a"}}, false},
		"a_default_in_a_list_entry_is_none":         {object{"l": list{object{"a": "1", "d": "x"}}}, object{"l": list{object{"a": "1"}}}, true},
		"an_empty_map_wants_nothing":                {object{}, object{"status": object{}}, true},
		"a_map_where_text_is_differs":               {object{"a": "1"}, object{"a": object{"b": "1"}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := contains(c.have, c.want); got != c.equal {
				t.Errorf("contains(%v, %v) is %v", c.have, c.want, got)
			}
		})
	}
}
