// This file knows which names the library exports: everything else is hidden.
#pragma once

#define DLOCK_EXPORT [[gnu::visibility("default")]]
