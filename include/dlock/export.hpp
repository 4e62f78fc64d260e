// Which names the library exports: everything else is hidden.
#pragma once

#define DLOCK_EXPORT [[gnu::visibility("default")]]
// Of what is nested in an exported class, and meant for nobody else.
#define DLOCK_HIDDEN [[gnu::visibility("hidden")]]
