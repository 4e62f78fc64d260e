// What two engines of a program have done, as the body of the answer to GET /metrics.
//
//   dlock-migrate -u sqlite:app.db up
//   metrics sqlite:app.db
#include <dlock/dlock.hpp>
#include <dlock/prometheus.hpp>

#include <iostream>
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const char* url = argc > 1 ? argv[1] : "sqlite:app.db";
  dlock::Engine orders(url), reports(url);
  const auto lock = orders.lock("account/42");
  if (const auto busy = reports.try_lock("account/42")) std::cerr << "two have one lock\n";
  if (const auto vain = reports.try_lock_for("account/42", 50ms)) std::cerr << "two have one lock\n";
  // The names in the map are the label `engine`: the same after a restart, and few.
  std::cout << dlock::prometheus_text({{"orders", orders.stats()}, {"reports", reports.stats()}});
} catch (const dlock::Error& error) {  // the engine cannot be opened, or asked; the numbers alone never fail
  std::cerr << to_string(error.fault()) << ": " << error.what() << '\n';
  return 1;
}
