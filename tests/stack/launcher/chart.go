package launcher

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// renderChart renders a Helm chart with the functions that OLM's uses. Helm's own engine would add its
// module's whole graph to the launcher for one chart whose manifests need eight functions.
func renderChart(folder, release, version string, values map[string]any) ([]byte, error) {
	defaults := map[string]any{}
	text, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &defaults)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chart's values: %w", err)
	}
	mergeValues(defaults, values)
	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("the chart in %s has no templates (%w)", folder, err)
	}
	chart := template.New("")
	chart.Funcs(chartFunctions(chart)).Option("missingkey=zero")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if _, err := chart.New(filepath.Base(file)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	data := map[string]any{
		"Values":  defaults,
		"Chart":   map[string]any{"Name": release, "Version": version},
		"Release": map[string]any{"Name": release},
	}
	var all bytes.Buffer
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue // only included by others
		}
		var out bytes.Buffer
		if err := chart.ExecuteTemplate(&out, name, data); err != nil {
			return nil, err
		}
		if manifest := strings.TrimSpace(out.String()); manifest != "" {
			fmt.Fprintf(&all, "---\n%s\n", strings.TrimPrefix(manifest, "---\n"))
		}
	}
	return all.Bytes(), nil
}

// mergeValues lays values over defaults, map by map, as Helm does.
func mergeValues(defaults, values map[string]any) {
	for key, value := range values {
		below, isMap := value.(map[string]any)
		into, hasMap := defaults[key].(map[string]any)
		if isMap && hasMap {
			mergeValues(into, below)
			continue
		}
		defaults[key] = value
	}
}

func chartFunctions(chart *template.Template) template.FuncMap {
	indent := func(n int, text string) string {
		margin := strings.Repeat(" ", n)
		return margin + strings.ReplaceAll(text, "\n", "\n"+margin)
	}
	return template.FuncMap{
		"toYaml": func(value any) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"indent":     indent,
		"nindent":    func(n int, text string) string { return "\n" + indent(n, text) },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"trunc":      func(n int, text string) string { return text[:min(n, len(text))] },
		"quote":      func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"default": func(otherwise, value any) any {
			if value == nil || value == "" {
				return otherwise
			}
			return value
		},
		"include": func(name string, data any) (string, error) {
			var out bytes.Buffer
			err := chart.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
	}
}
