//! The one place where the engine reads a clock. A test clock stands until it is set.

use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wf_core::Millis;
use wf_store::TestClock;

use crate::options::ClockMode;

pub struct Clock {
    /// `None`: the system's.
    test: Option<Mutex<Test>>,
}

struct Test {
    now: Millis,
    /// It ticks on from `now` since then.
    ticking_since: Option<Instant>,
}

impl Clock {
    /// A store that was used with a test clock goes on from where that stood.
    pub fn new(mode: ClockMode, stored: Option<TestClock>) -> Clock {
        let ClockMode::Test { start } = mode else { return Clock { test: None } };
        let (now, frozen) = stored.map_or((start, true), |stored| (stored.now, stored.frozen));
        let ticking_since = (!frozen).then(Instant::now);
        Clock { test: Some(Mutex::new(Test { now, ticking_since })) }
    }

    pub fn is_test(&self) -> bool {
        self.test.is_some()
    }

    pub fn now(&self) -> Millis {
        match &self.test {
            Some(test) => lock(test).now(),
            None => system_now(),
        }
    }

    /// Time passes without being set: something may fall due by itself.
    pub fn ticks(&self) -> bool {
        self.test.as_ref().is_none_or(|test| lock(test).ticking_since.is_some())
    }

    pub fn set(&self, now: Millis, frozen: bool) {
        if let Some(test) = &self.test {
            *lock(test) = Test { now, ticking_since: (!frozen).then(Instant::now) };
        }
    }
}

impl Test {
    fn now(&self) -> Millis {
        let ticked = self.ticking_since.map_or(0, |since| since.elapsed().as_millis() as Millis);
        self.now.saturating_add(ticked)
    }
}

fn system_now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as Millis)
}

/// A poisoned lock only says that another thread panicked; the value is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
