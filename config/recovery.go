package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gswitch/options"
	"gswitch/section"
	"gswitch/transport"
	"gswitch/units"
)

// RecoveryOptions are the options of schemes of loss recovery, as keys in documents of
// hosts and in scenarios. The schemes describe them (transport.Kind.Params).
type RecoveryOptions struct {
	Set section.Extra[recoveryOptions]
}

type recoveryOptions struct{}

// Kinds returns a key for each option of any scheme.
func (recoveryOptions) Kinds() []section.Kind {
	var kinds []section.Kind
	for _, p := range unitedOptions() {
		kinds = append(kinds, optionKind(&p))
	}
	return kinds
}

// unitedOptions returns one option for all of a name, which are of one unit, with every
// value that any scheme takes.
func unitedOptions() []options.Param {
	var all []options.Param
	for _, k := range transport.Kinds() {
		for _, p := range k.Params {
			at := slices.IndexFunc(all, func(u options.Param) bool { return u.Name == p.Name })
			if at < 0 {
				p.Choices = slices.Clone(p.Choices)
				all = append(all, p)
				continue
			}
			u := &all[at]
			u.Min = min(u.Min, p.Min)
			if u.Max == 0 || p.Max == 0 {
				u.Max = 0 // no limit
			} else {
				u.Max = max(u.Max, p.Max)
			}
			for _, c := range p.Choices {
				if !slices.Contains(u.Choices, c) {
					u.Choices = append(u.Choices, c)
				}
			}
		}
	}
	return all
}

// optionTypes are the types of keys, by the unit of the option.
var optionTypes = map[options.Unit]reflect.Type{
	options.Number: reflect.TypeFor[float64](),
	options.Count:  reflect.TypeFor[int](),
	options.Rate:   reflect.TypeFor[units.Rate](),
	options.Bytes:  reflect.TypeFor[units.Size](),
	options.Time:   reflect.TypeFor[units.Duration](),
	options.Flag:   reflect.TypeFor[bool](),
	options.Choice: reflect.TypeFor[string](),
}

// optionKind is the key of an option. It has no default, as that depends on the scheme.
// Without a greatest value it has no range, and the scheme checks the least one.
func optionKind(p *options.Param) section.Kind {
	k := section.Kind{Key: p.Name, Doc: describeOption(p.Name), Type: optionTypes[p.Unit]}
	switch {
	case p.Unit == options.Choice:
		k.Tag = reflect.StructTag(fmt.Sprintf(`enum:"%s"`, strings.Join(p.Choices, ",")))
	case p.Max != 0:
		k.Tag = reflect.StructTag(fmt.Sprintf(`range:"%s,%s"`, decimal(p.Min), decimal(p.Max)))
	}
	return k
}

// decimal writes a number without an exponent.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// describeOption says what an option means to the schemes that have it.
func describeOption(name string) string {
	type meaning struct {
		schemes []string
		text    string
	}
	var all []meaning
	for _, k := range transport.Kinds() {
		i := slices.IndexFunc(k.Params, func(p options.Param) bool { return p.Name == name })
		if i < 0 {
			continue
		}
		text := fmt.Sprintf("%s. %s if left out.", k.Params[i].Doc, k.Params[i].Default)
		if at := slices.IndexFunc(all, func(m meaning) bool { return m.text == text }); at >= 0 {
			all[at].schemes = append(all[at].schemes, k.Name)
		} else {
			all = append(all, meaning{[]string{k.Name}, text})
		}
	}
	parts := make([]string, len(all))
	for i, m := range all {
		parts[i] = strings.Join(m.schemes, ", ") + ": " + m.text
	}
	return strings.Join(parts, " ")
}

// Given returns the options that are set, as transport.Kind.Configure takes them.
func (o *RecoveryOptions) Given() map[string]string {
	given := map[string]string{}
	for _, k := range (recoveryOptions{}).Kinds() {
		switch v := o.Set.Get(k.Key).(type) {
		case *bool:
			given[k.Key] = strconv.FormatBool(*v)
		case *int:
			given[k.Key] = strconv.Itoa(*v)
		case *float64:
			given[k.Key] = decimal(*v)
		case *units.Rate:
			if given[k.Key] = v.String(); *v == 0 { // unlimited
				given[k.Key] = "0"
			}
		case *units.Size:
			given[k.Key] = v.String()
		case *units.Duration:
			given[k.Key] = v.String()
		case *string:
			given[k.Key] = *v
		}
	}
	return given
}
