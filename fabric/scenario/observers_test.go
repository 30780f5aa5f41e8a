package scenario_test

import _ "gswitch/fabric/observe/all" // the page has the values of all systems
