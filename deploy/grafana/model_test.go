package grafana

// What is written of Grafana's dashboard model: schema version 39, Grafana 10
// and later. Fields that are left out have Grafana's defaults.

const schemaVersion = 39

type dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: the crosshair is shared by all panels
	Refresh       string      `json:"refresh"`
	Time          timeRange   `json:"time"`
	Timezone      string      `json:"timezone"`
	Links         []dashLink  `json:"links"`
	Templating    templating  `json:"templating"`
	Annotations   annotations `json:"annotations"`
	Panels        []*panel    `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// dashLink is a link at the top of a dashboard to all that have its tags.
type dashLink struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Tags        []string `json:"tags"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	AsDropdown  bool     `json:"asDropdown"`
	TargetBlank bool     `json:"targetBlank"`
}

type templating struct {
	List []variable `json:"list"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      any         `json:"query"`
	Definition string      `json:"definition,omitempty"`
	Datasource *datasource `json:"datasource,omitempty"`
	Refresh    int         `json:"refresh"` // 1: when the dashboard is loaded, 2: when the time changes
	Sort       int         `json:"sort"`    // 7: natural order
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	Current    *current    `json:"current,omitempty"`
}

type current struct {
	Text  any `json:"text"`
	Value any `json:"value"`
}

type variableQuery struct {
	Query string `json:"query"`
	RefID string `json:"refId"`
}

type annotations struct {
	List []annotation `json:"list"`
}

type annotation struct {
	Name        string      `json:"name"`
	Datasource  *datasource `json:"datasource"`
	Enable      bool        `json:"enable"`
	Expr        string      `json:"expr"`
	Step        string      `json:"step"`
	TitleFormat string      `json:"titleFormat"`
	TextFormat  string      `json:"textFormat"`
	IconColor   string      `json:"iconColor"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	GridPos         gridPos          `json:"gridPos"`
	Collapsed       *bool            `json:"collapsed,omitempty"` // of rows
	Panels          *[]*panel        `json:"panels,omitempty"`    // of rows: those of one that is collapsed
	Datasource      *datasource      `json:"datasource,omitempty"`
	Targets         []target         `json:"targets,omitempty"`
	FieldConfig     *fieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Transformations []transformation `json:"transformations,omitempty"`
}

type gridPos struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat,omitempty"`
	Instant      bool       `json:"instant,omitempty"`
	Range        bool       `json:"range,omitempty"`
	Format       string     `json:"format"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []override    `json:"overrides"`
}

type fieldDefaults struct {
	Unit       string         `json:"unit,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	Thresholds *thresholds    `json:"thresholds,omitempty"`
	Mappings   []mapping      `json:"mappings,omitempty"`
	Links      []dataLink     `json:"links,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"` // null: from minus infinity
}

type mapping struct {
	Type    string             `json:"type"`
	Options map[string]mapText `json:"options"`
}

type mapText struct {
	Text  string `json:"text"`
	Color string `json:"color"`
	Index int    `json:"index"`
}

type dataLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

type override struct {
	Matcher    matcher    `json:"matcher"`
	Properties []property `json:"properties"`
}

type matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

type property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

type transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
