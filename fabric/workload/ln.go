package workload

import "math"

// ln is the natural logarithm of x, normal and above 0, the same on every
// machine: math.Log rounds otherwise where a processor multiplies and adds at
// once, and arrivals must not depend on that. The polynomial is that of
// FreeBSD's e_log.c (Sun, 1993), whose error is below one unit in the last
// place: with x = 2^k*(1+f) and s = f/(2+f), log(1+f) = f - f*f/2 +
// s*(f*f/2+R(s*s)).
func ln(x float64) float64 {
	const (
		hi = 6.93147180369123816490e-01 // log 2, with zeros at the end
		lo = 1.90821492927058770002e-10 // and the rest of it
	)
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	f, k := m-1, float64(e)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	odd := float64(s2 * horner(s4, 6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01))
	even := float64(s4 * horner(s4, 3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01, 0))
	half := float64(0.5 * f * f)
	tail := float64(s*(half+(odd+even))) + float64(k*lo)
	return float64(k*hi) - ((half - tail) - f)
}

// horner is a + x*(b + x*(c + x*d)).
func horner(x, a, b, c, d float64) float64 {
	c += float64(x * d)
	b += float64(x * c)
	return a + float64(x*b)
}
