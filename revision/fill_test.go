package revision_test

// Walking the API types by reflection: fill puts something into every field, and leaves lists every value that can be
// changed, with a way to change it and to take the change back. A type that the walk does not know fails the test, so a
// new Kubernetes release cannot add fields behind its back.

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler counts, so that no two values are the same and every run fills in the same ones.
type filler struct{ n int64 }

func (f *filler) next() int64 { f.n++; return f.n }

// opaque are the struct types that are one value in JSON.
var opaque = map[reflect.Type]func(n int64) any{
	reflect.TypeFor[resource.Quantity]():  func(n int64) any { return *resource.NewQuantity(n, resource.DecimalSI) },
	reflect.TypeFor[metav1.Time]():        func(n int64) any { return metav1.NewTime(time.Unix(n, 0).UTC()) },
	reflect.TypeFor[intstr.IntOrString](): func(n int64) any { return intstr.FromInt32(int32(n)) },
	reflect.TypeFor[metav1.FieldsV1]():    func(n int64) any { return *metav1.NewFieldsV1(fmt.Sprintf(`{"f:x%d":{}}`, n)) },
}

// fill sets v and everything below it; a list gets one element, a map one entry.
func (f *filler) fill(t tb, v reflect.Value) {
	if value, ok := opaque[v.Type()]; ok {
		v.Set(reflect.ValueOf(value(f.next())))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.next())
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", f.next()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(t, v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(t, key)
		f.fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(t, field)
		}
	default:
		t.Fatalf("fill: do not know what to do with a %s", v.Type())
	}
}

// change is one way to make the filled object mean something else: apply sets value and nothing beside it.
type change struct {
	path  string
	value reflect.Value
	apply func()
}

// during makes the change, calls test, and takes the change back.
func (c change) during(test func()) {
	old := reflect.New(c.value.Type()).Elem()
	old.Set(c.value)
	c.apply()
	test()
	c.value.Set(old)
}

// walker collects changes, and the pointers, lists and maps met on the way.
type walker struct {
	filler
	// values are changes to another value, one for each leaf; others are changes of any other kind.
	values, others []change
	// pointers and collections are what can be nil, empty or zero.
	pointers, collections []change
}

func (w *walker) add(path string, value reflect.Value, apply func()) {
	w.values = append(w.values, change{path, value, apply})
}

func (w *walker) addOther(path string, value reflect.Value, apply func()) {
	w.others = append(w.others, change{path, value, apply})
}

// walk collects from a filled, settable v.
func (w *walker) walk(t tb, path string, v reflect.Value) {
	if other, ok := opaque[v.Type()]; ok {
		w.add(path, v, func() { v.Set(reflect.ValueOf(other(w.next()))) })
		if _, isPort := reflect.TypeAssert[intstr.IntOrString](v); isPort {
			w.addOther(path+" as a string", v, func() {
				port := v.Interface().(intstr.IntOrString)
				v.Set(reflect.ValueOf(intstr.FromString(port.String())))
			})
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		w.add(path, v, func() { v.SetBool(!v.Bool()) })
	case reflect.Int32, reflect.Int64:
		w.add(path, v, func() { v.SetInt(w.next()) })
		w.addOther(path+" to zero", v, func() { v.SetZero() })
	case reflect.String:
		w.add(path, v, func() { v.SetString(v.String() + "x") })
		w.addOther(path+" to nothing", v, func() { v.SetZero() })
	case reflect.Pointer:
		w.pointers = append(w.pointers, change{path, v, func() { v.Set(reflect.New(v.Type().Elem())) }})
		w.addOther(path+" to nil", v, func() { v.SetZero() })
		w.walk(t, path, v.Elem())
	case reflect.Slice:
		w.collections = append(w.collections, change{path, v, func() { v.Set(reflect.MakeSlice(v.Type(), 0, 0)) }})
		w.addOther(path+" to nil", v, func() { v.SetZero() })
		w.addOther(path+" twice", v, func() { v.Set(reflect.Append(v, v.Index(0))) })
		w.walk(t, path+"[0]", v.Index(0))
	case reflect.Map:
		w.collections = append(w.collections, change{path, v, func() { v.Set(reflect.MakeMap(v.Type())) }})
		w.walkMap(t, path, v)
	case reflect.Struct:
		for field, value := range v.Fields() {
			w.walk(t, path+"."+field.Name, value)
		}
	default:
		t.Fatalf("walk: do not know what to do with a %s", v.Type())
	}
}

// walkMap changes the key and the value of the one entry. It sets a new map each time, so that the old one can be put
// back.
func (w *walker) walkMap(t tb, path string, v reflect.Value) {
	key := v.MapKeys()[0]
	value := v.MapIndex(key)
	with := func(key, value reflect.Value) func() {
		return func() {
			m := reflect.MakeMap(v.Type())
			m.SetMapIndex(key, value)
			v.Set(m)
		}
	}
	otherKey, otherValue := reflect.New(key.Type()).Elem(), reflect.New(value.Type()).Elem()
	w.fill(t, otherKey)
	w.fill(t, otherValue)
	w.addOther(path+" to nil", v, func() { v.SetZero() })
	w.addOther(path+" key", v, with(otherKey, value))
	w.add(path+" value", v, with(key, otherValue))
	w.addOther(path+" one more", v, func() {
		with(key, value)()
		v.SetMapIndex(otherKey, otherValue)
	})
}
