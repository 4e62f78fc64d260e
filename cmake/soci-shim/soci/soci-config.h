// What SOCI was built with, without Boost: the installed one switches Boost on although the package
// that carries it does not bring Boost along. The switch is used only in SOCI's templates, so the ABI is the same.
#ifndef SOCICONFIG_H_INCLUDED
#define SOCICONFIG_H_INCLUDED
#define SOCI_HAVE_CXX11
#define SOCI_HAVE_VISIBILITY_SUPPORT
#endif
